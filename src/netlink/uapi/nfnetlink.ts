// linux/netfilter/nfnetlink.h, Linux 6.1. Only what we use.

export const NFNL_SUBSYS_NFTABLES = 10
export const NFNL_SUBSYS_CTNETLINK = 1
export const NFNL_SUBSYS_ULOG = 4
export const NFNL_MSG_BATCH_BEGIN = 16
export const NFNL_MSG_BATCH_END = 17
export const NFNLGRP_NFTABLES = 7
export const NFNLGRP_NFTRACE = 9
