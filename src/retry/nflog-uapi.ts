// linux/netfilter/nfnetlink_log.h, Linux 6.1. Only what we use.

export const NFULNL_MSG_PACKET = 0
export const NFULNL_MSG_CONFIG = 1

export const NFULA_PAYLOAD = 9

export const NFULA_CFG_CMD = 1
export const NFULA_CFG_MODE = 2
export const NFULA_CFG_NLBUFSIZ = 3
export const NFULA_CFG_TIMEOUT = 4
export const NFULA_CFG_QTHRESH = 5

export const NFULNL_CFG_CMD_BIND = 1
export const NFULNL_COPY_PACKET = 2
