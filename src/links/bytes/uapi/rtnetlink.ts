// linux/rtnetlink.h, linux/if_link.h, linux/if_addr.h, linux/if.h and linux/veth.h, Linux 6.1. Only what we use; the values
// never change.

export const RTM_NEWLINK = 16
export const RTM_DELLINK = 17
export const RTM_GETLINK = 18
export const RTM_NEWADDR = 20
export const RTM_DELADDR = 21
export const RTM_GETADDR = 22
export const RTM_NEWROUTE = 24
export const RTM_GETROUTE = 26
export const RTM_NEWNEIGH = 28
export const RTM_GETNEIGH = 30

export const RTNLGRP_IPV4_IFADDR = 5
export const RTNLGRP_IPV6_IFADDR = 9

export const IFF_UP = 0x1

export const IFLA_ADDRESS = 1
export const IFLA_IFNAME = 3
export const IFLA_MTU = 4
export const IFLA_MASTER = 10
export const IFLA_LINKINFO = 18
export const IFLA_NET_NS_FD = 28
export const IFLA_EXT_MASK = 29
export const IFLA_INFO_KIND = 1
export const IFLA_INFO_DATA = 2
export const VETH_INFO_PEER = 1
export const RTEXT_FILTER_SKIP_STATS = 8

export const IFA_ADDRESS = 1
export const IFA_LOCAL = 2
export const IFA_FLAGS = 8
export const IFA_F_NODAD = 0x02

export const NDA_DST = 1
export const NUD_INCOMPLETE = 0x01
export const NUD_FAILED = 0x20

export const RTA_DST = 1
export const RTA_SRC = 2
export const RTA_IIF = 3
export const RTA_OIF = 4
export const RTA_GATEWAY = 5
export const RTA_MULTIPATH = 9
export const RTA_METRICS = 8
export const RTA_MARK = 16

export const RT_TABLE_MAIN = 254
export const RTPROT_STATIC = 4
export const RT_SCOPE_UNIVERSE = 0
export const RT_SCOPE_SITE = 200
export const RT_SCOPE_LINK = 253
export const RT_SCOPE_HOST = 254
export const RT_SCOPE_NOWHERE = 255
export const RTN_UNICAST = 1
export const RTN_LOCAL = 2
export const RTN_UNREACHABLE = 7
/** Of RTA_METRICS. */
export const RTAX_MTU = 2
