// linux/netfilter/ipset/ip_set.h, Linux 6.1. Only what we use.

export const NFNL_SUBSYS_IPSET = 6
export const IPSET_CMD_DESTROY = 3

/** Every kernel since 2.6.39 takes it. */
export const IPSET_PROTOCOL = 6
export const IPSET_ATTR_PROTOCOL = 1
export const IPSET_ATTR_SETNAME = 2
