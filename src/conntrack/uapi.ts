// linux/netfilter/nfnetlink_conntrack.h, Linux 6.1. Only what we use.

export const IPCTNL_MSG_CT_NEW = 0
export const IPCTNL_MSG_CT_GET = 1
export const IPCTNL_MSG_CT_DELETE = 2

// enum nfnetlink_groups of linux/netfilter/nfnetlink.h
export const NFNLGRP_CONNTRACK_NEW = 1
export const NFNLGRP_CONNTRACK_UPDATE = 2
export const NFNLGRP_CONNTRACK_DESTROY = 3

export const CTA_TUPLE_ORIG = 1
export const CTA_TUPLE_REPLY = 2

export const CTA_STATUS = 3

export const CTA_PROTOINFO = 4

export const CTA_NAT_SRC = 6

export const CTA_TIMEOUT = 7

export const CTA_COUNTERS_ORIG = 9
export const CTA_COUNTERS_REPLY = 10

export const CTA_ID = 12

export const CTA_ZONE = 18

export const CTA_TIMESTAMP = 20

export const CTA_FILTER = 25

export const CTA_TUPLE_IP = 1
export const CTA_TUPLE_PROTO = 2

export const CTA_IP_V4_SRC = 1
export const CTA_IP_V4_DST = 2
export const CTA_IP_V6_SRC = 3
export const CTA_IP_V6_DST = 4

export const CTA_PROTO_NUM = 1
export const CTA_PROTO_SRC_PORT = 2
export const CTA_PROTO_DST_PORT = 3

export const CTA_FILTER_ORIG_FLAGS = 1
export const CTA_FILTER_REPLY_FLAGS = 2

export const CTA_NAT_V4_MINIP = 1
export const CTA_NAT_V4_MAXIP = 2
export const CTA_NAT_V6_MINIP = 4
export const CTA_NAT_V6_MAXIP = 5

export const CTA_COUNTERS_PACKETS = 1
export const CTA_COUNTERS_BYTES = 2

export const CTA_TIMESTAMP_START = 1
export const CTA_TIMESTAMP_STOP = 2

export const CTA_PROTOINFO_TCP = 1
export const CTA_PROTOINFO_TCP_STATE = 1

// enum ip_conntrack_status of include/uapi/linux/netfilter/nf_conntrack_common.h
export const IPS_SEEN_REPLY = 1 << 1
export const IPS_DST_NAT = 1 << 5

// include/uapi/linux/netfilter/nf_conntrack_tcp.h
export const TCP_CONNTRACK_TIME_WAIT = 7
export const TCP_CONNTRACK_CLOSE = 8
