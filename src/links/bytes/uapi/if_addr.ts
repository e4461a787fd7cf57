// linux/if_addr.h, linux/rtnetlink.h and linux/if_link.h, Linux 6.1: what listing addresses takes beyond if_link.ts. Only
// what we use; the values never change.

export const RTNLGRP_IPV4_IFADDR = 5
export const RTNLGRP_IPV6_IFADDR = 9

export const IFA_FLAGS = 8
export const IFLA_EXT_MASK = 29
export const RTEXT_FILTER_SKIP_STATS = 8

export const RT_SCOPE_UNIVERSE = 0
export const RT_SCOPE_SITE = 200
export const RT_SCOPE_LINK = 253
export const RT_SCOPE_HOST = 254
export const RT_SCOPE_NOWHERE = 255
