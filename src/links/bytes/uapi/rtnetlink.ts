// linux/rtnetlink.h, linux/if_link.h, linux/veth.h and linux/if.h, Linux 6.1: what building a network takes beyond if_link.ts.
// Only what we use; the values never change.

export const RTM_NEWROUTE = 24
export const RTM_GETROUTE = 26

export const IFF_UP = 0x1

export const IFLA_ADDRESS = 1
export const IFLA_MASTER = 10
export const IFLA_NET_NS_FD = 28
export const IFLA_INFO_DATA = 2
export const VETH_INFO_PEER = 1

export const RTA_DST = 1
export const RTA_OIF = 4
export const RTA_GATEWAY = 5
export const RTA_MULTIPATH = 9

export const RT_TABLE_MAIN = 254
export const RTPROT_STATIC = 4
export const RT_SCOPE_UNIVERSE = 0
export const RT_SCOPE_LINK = 253
export const RTN_UNICAST = 1
export const RTN_UNREACHABLE = 7
