// linux/netfilter/nfnetlink_acct.h and ipset/ip_set.h, Linux 6.1. Only what we use.

export const NFNL_SUBSYS_ACCT = 7
export const NFNL_MSG_ACCT_NEW = 0
export const NFNL_MSG_ACCT_GET = 1
export const NFNL_MSG_ACCT_DEL = 3

export const NFACCT_NAME = 1
export const NFACCT_PKTS = 2

// ipset

export const NFNL_SUBSYS_IPSET = 6
export const IPSET_CMD_DESTROY = 3

/** Every kernel since 2.6.39 takes it. */
export const IPSET_PROTOCOL = 6
export const IPSET_ATTR_PROTOCOL = 1
export const IPSET_ATTR_SETNAME = 2
