// linux/rtnetlink.h, linux/if_link.h and linux/if_addr.h, Linux 6.1. Only what we use; the values never change.

export const RTM_NEWLINK = 16
export const RTM_DELLINK = 17
export const RTM_GETLINK = 18
export const RTM_NEWADDR = 20
export const RTM_DELADDR = 21
export const RTM_GETADDR = 22

export const RTNLGRP_IPV4_IFADDR = 5
export const RTNLGRP_IPV6_IFADDR = 9

export const IFLA_IFNAME = 3
export const IFLA_LINKINFO = 18
export const IFLA_INFO_KIND = 1

export const IFA_ADDRESS = 1
export const IFA_LOCAL = 2
export const IFA_F_NODAD = 0x02
