// linux/netlink.h, Linux 6.1. Only what we use; the values never change.

export const NETLINK_ROUTE = 0
export const NETLINK_NETFILTER = 12
export const NETLINK_GENERIC = 16

export const SOL_NETLINK = 270

export const NLM_F_REQUEST = 1
export const NLM_F_MULTI = 2
export const NLM_F_ACK = 4
export const NLM_F_DUMP_INTR = 16
export const NLM_F_DUMP = 768
export const NLM_F_REPLACE = 256
export const NLM_F_CREATE = 1024
export const NLM_F_APPEND = 2048
export const NLM_F_EXCL = 512
export const NLM_F_CAPPED = 256
export const NLM_F_ACK_TLVS = 512

export const NLMSG_ERROR = 2
export const NLMSG_DONE = 3

export const NLMSGERR_ATTR_MSG = 1
export const NLMSGERR_ATTR_OFFS = 2

export const NETLINK_ADD_MEMBERSHIP = 1
export const NETLINK_DROP_MEMBERSHIP = 2
export const NETLINK_CAP_ACK = 10
export const NETLINK_EXT_ACK = 11
