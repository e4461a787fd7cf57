// linux/netfilter/nfnetlink_acct.h, Linux 6.1. Only what we use.

export const NFNL_SUBSYS_ACCT = 7
export const NFNL_MSG_ACCT_NEW = 0
export const NFNL_MSG_ACCT_GET = 1
export const NFNL_MSG_ACCT_DEL = 3

export const NFACCT_NAME = 1
export const NFACCT_PKTS = 2
