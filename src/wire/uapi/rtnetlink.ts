// linux/rtnetlink.h, Linux 6.1. With linux/if_addr.h. Only what we use.

export const RTM_NEWLINK = 16
export const RTM_GETLINK = 18
export const RTM_NEWADDR = 20
export const RTM_GETADDR = 22
export const RTNLGRP_IPV4_IFADDR = 5
export const RTNLGRP_IPV6_IFADDR = 9
export const IFA_ADDRESS = 1
export const IFA_LOCAL = 2
export const IFA_FLAGS = 8
export const IFLA_IFNAME = 3
export const IFLA_EXT_MASK = 29
export const RTEXT_FILTER_SKIP_STATS = 8
export const RT_SCOPE_UNIVERSE = 0
export const RT_SCOPE_SITE = 200
export const RT_SCOPE_LINK = 253
export const RT_SCOPE_HOST = 254
export const RT_SCOPE_NOWHERE = 255
