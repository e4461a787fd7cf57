// linux/netfilter/nf_tables.h, Linux 6.1. Only what we use.

export const NFT_REG_VERDICT = 0
export const NFT_REG_1 = 1
export const NFT_REG_4 = 4
export const NFT_REG32_00 = 8
export const NFT_REG32_15 = 23

export const NFT_USERDATA_MAXLEN = 256

export const NFT_MSG_NEWTABLE = 0
export const NFT_MSG_GETTABLE = 1
export const NFT_MSG_DELTABLE = 2
export const NFT_MSG_NEWCHAIN = 3
export const NFT_MSG_GETCHAIN = 4
export const NFT_MSG_DELCHAIN = 5
export const NFT_MSG_NEWRULE = 6
export const NFT_MSG_GETRULE = 7
export const NFT_MSG_DELRULE = 8
export const NFT_MSG_NEWSET = 9
export const NFT_MSG_GETSET = 10
export const NFT_MSG_DELSET = 11
export const NFT_MSG_NEWSETELEM = 12
export const NFT_MSG_GETSETELEM = 13
export const NFT_MSG_DELSETELEM = 14
export const NFT_MSG_NEWGEN = 15
export const NFT_MSG_GETGEN = 16
export const NFT_MSG_TRACE = 17
export const NFT_MSG_DESTROYSETELEM = 30

export const NFTA_LIST_ELEM = 1

export const NFTA_TABLE_NAME = 1
export const NFTA_TABLE_FLAGS = 2
export const NFTA_TABLE_USERDATA = 6
export const NFT_TABLE_F_DORMANT = 0x1
export const NFT_TABLE_F_OWNER = 0x2

export const NFTA_CHAIN_TABLE = 1
export const NFTA_CHAIN_NAME = 3
export const NFTA_CHAIN_HOOK = 4
export const NFTA_CHAIN_POLICY = 5
export const NFTA_CHAIN_TYPE = 7
export const NFTA_CHAIN_USERDATA = 12

export const NFTA_HOOK_HOOKNUM = 1
export const NFTA_HOOK_PRIORITY = 2

export const NF_INET_PRE_ROUTING = 0
export const NF_INET_LOCAL_IN = 1
export const NF_INET_FORWARD = 2
export const NF_INET_LOCAL_OUT = 3
export const NF_INET_POST_ROUTING = 4

export const NFTA_RULE_TABLE = 1
export const NFTA_RULE_CHAIN = 2
export const NFTA_RULE_HANDLE = 3
export const NFTA_RULE_EXPRESSIONS = 4
export const NFTA_RULE_USERDATA = 7

export const NFTA_EXPR_NAME = 1
export const NFTA_EXPR_DATA = 2

export const NFTA_SET_TABLE = 1
export const NFTA_SET_NAME = 2
export const NFTA_SET_FLAGS = 3
export const NFTA_SET_KEY_TYPE = 4
export const NFTA_SET_KEY_LEN = 5
export const NFTA_SET_DATA_TYPE = 6
export const NFTA_SET_DATA_LEN = 7
export const NFTA_SET_DESC = 9
export const NFTA_SET_ID = 10
export const NFTA_SET_TIMEOUT = 11
export const NFTA_SET_USERDATA = 13
export const NFTA_SET_DESC_SIZE = 1
export const NFTA_SET_DESC_CONCAT = 2
export const NFTA_SET_FIELD_LEN = 1

export const NFT_SET_ANONYMOUS = 1
export const NFT_SET_INTERVAL = 4
export const NFT_SET_MAP = 8
export const NFT_SET_TIMEOUT = 16
export const NFT_SET_EVAL = 32
export const NFT_SET_CONCAT = 128

export const NFTA_SET_ELEM_LIST_TABLE = 1
export const NFTA_SET_ELEM_LIST_SET = 2
export const NFTA_SET_ELEM_LIST_ELEMENTS = 3
export const NFTA_SET_ELEM_KEY = 1
export const NFTA_SET_ELEM_DATA = 2
export const NFTA_SET_ELEM_FLAGS = 3
export const NFTA_SET_ELEM_EXPIRATION = 5
export const NFTA_SET_ELEM_USERDATA = 6
export const NFTA_SET_ELEM_EXPR = 7
export const NFTA_SET_ELEM_KEY_END = 10

export const NFT_SET_ELEM_INTERVAL_END = 1
export const NFT_SET_ELEM_CATCHALL = 2

export const NFTA_DATA_VALUE = 1
export const NFTA_DATA_VERDICT = 2

export const NFTA_VERDICT_CODE = 1
export const NFTA_VERDICT_CHAIN = 2

export const NF_DROP = 0

export const NF_ACCEPT = 1

export const NF_STOLEN = 2

export const NF_QUEUE = 3

export const NF_REPEAT = 4

export const NFT_CONTINUE = -1

export const NFT_BREAK = -2

export const NFT_JUMP = -3

export const NFT_GOTO = -4

export const NFT_RETURN = -5

export const NFTA_GEN_ID = 1
export const NFTA_GEN_PROC_PID = 2
export const NFTA_GEN_PROC_NAME = 3

export const NFTA_PAYLOAD_DREG = 1
export const NFTA_PAYLOAD_BASE = 2
export const NFTA_PAYLOAD_OFFSET = 3
export const NFTA_PAYLOAD_LEN = 4
export const NFTA_PAYLOAD_SREG = 5

export const NFT_PAYLOAD_NETWORK_HEADER = 1
export const NFT_PAYLOAD_TRANSPORT_HEADER = 2

export const NFTA_META_DREG = 1
export const NFTA_META_KEY = 2
export const NFTA_META_SREG = 3

export const NFT_META_L4PROTO = 16
export const NFT_META_MARK = 3
export const NFT_META_IIFNAME = 6
export const NFT_META_NFTRACE = 12
export const NFT_META_NFPROTO = 15

export const NFTA_CT_DREG = 1
export const NFTA_CT_KEY = 2
export const NFTA_CT_DIRECTION = 3
export const NFTA_CT_SREG = 4

export const NFT_CT_STATE = 0
export const NFT_CT_DIRECTION = 1
export const NFT_CT_STATUS = 2
export const NFT_CT_SRC = 8
export const NFT_CT_DST = 9
export const NFT_CT_PROTO_SRC = 11
export const NFT_CT_PROTO_DST = 12
export const NFT_CT_L3PROTOCOL = 7
export const NFT_CT_PROTOCOL = 10
export const NFT_CT_SRC_IP = 19
export const NFT_CT_DST_IP = 20
export const NFT_CT_SRC_IP6 = 21
export const NFT_CT_DST_IP6 = 22

export const NFTA_FIB_DREG = 1
export const NFTA_FIB_RESULT = 2
export const NFTA_FIB_FLAGS = 3

export const NFT_FIB_RESULT_ADDRTYPE = 3

export const NFTA_FIB_F_SADDR = 1
export const NFTA_FIB_F_DADDR = 2

export const NFTA_CMP_SREG = 1
export const NFTA_CMP_OP = 2
export const NFTA_CMP_DATA = 3

export const NFT_CMP_EQ = 0
export const NFT_CMP_NEQ = 1

export const NFTA_BITWISE_SREG = 1
export const NFTA_BITWISE_DREG = 2
export const NFTA_BITWISE_LEN = 3
export const NFTA_BITWISE_MASK = 4
export const NFTA_BITWISE_XOR = 5
export const NFTA_BITWISE_OP = 6

export const NFT_BITWISE_BOOL = 0

export const NFTA_BYTEORDER_SREG = 1
export const NFTA_BYTEORDER_DREG = 2
export const NFTA_BYTEORDER_OP = 3
export const NFTA_BYTEORDER_LEN = 4
export const NFTA_BYTEORDER_SIZE = 5

export const NFT_BYTEORDER_NTOH = 0
export const NFT_BYTEORDER_HTON = 1

export const NFTA_LOOKUP_SET = 1
export const NFTA_LOOKUP_SREG = 2
export const NFTA_LOOKUP_DREG = 3
export const NFTA_LOOKUP_FLAGS = 5

export const NFT_LOOKUP_F_INV = 1

export const NFTA_NG_DREG = 1
export const NFTA_NG_MODULUS = 2
export const NFTA_NG_TYPE = 3
export const NFTA_NG_OFFSET = 4

export const NFT_NG_RANDOM = 1

// enum nft_hash_attributes, enum nft_hash_types
export const NFTA_HASH_SREG = 1
export const NFTA_HASH_DREG = 2
export const NFTA_HASH_LEN = 3
export const NFTA_HASH_MODULUS = 4
export const NFTA_HASH_SEED = 5
export const NFTA_HASH_OFFSET = 6
export const NFTA_HASH_TYPE = 7
export const NFT_HASH_JENKINS = 0

export const NFTA_IMMEDIATE_DREG = 1
export const NFTA_IMMEDIATE_DATA = 2

export const NFTA_DYNSET_SET_NAME = 1
export const NFTA_DYNSET_OP = 3
export const NFTA_DYNSET_SREG_KEY = 4
export const NFTA_DYNSET_SREG_DATA = 5
export const NFTA_DYNSET_TIMEOUT = 6
export const NFTA_DYNSET_EXPR = 7
export const NFTA_DYNSET_EXPRESSIONS = 10
export const NFTA_DYNSET_FLAGS = 9

export const NFT_DYNSET_OP_ADD = 0
export const NFT_DYNSET_OP_UPDATE = 1
export const NFT_DYNSET_OP_DELETE = 2

export const NFTA_NAT_TYPE = 1
export const NFTA_NAT_FAMILY = 2
export const NFTA_NAT_REG_ADDR_MIN = 3
export const NFTA_NAT_REG_ADDR_MAX = 4
export const NFTA_NAT_REG_PROTO_MIN = 5
export const NFTA_NAT_REG_PROTO_MAX = 6
export const NFTA_NAT_FLAGS = 7

export const NFT_NAT_DNAT = 1

export const NF_NAT_RANGE_MAP_IPS = 1
export const NF_NAT_RANGE_PROTO_SPECIFIED = 2

export const NFTA_MASQ_FLAGS = 1
export const NFTA_MASQ_REG_PROTO_MIN = 2
export const NFTA_MASQ_REG_PROTO_MAX = 3

export const NFTA_REDIR_REG_PROTO_MIN = 1
export const NFTA_REDIR_REG_PROTO_MAX = 2
export const NFTA_REDIR_FLAGS = 3

export const NFTA_REJECT_TYPE = 1
export const NFTA_REJECT_ICMP_CODE = 2

export const NFTA_COUNTER_BYTES = 1
export const NFTA_COUNTER_PACKETS = 2

export const NFTA_LOG_GROUP = 1
export const NFTA_LOG_PREFIX = 2
export const NFTA_LOG_SNAPLEN = 3
export const NFTA_LOG_QTHRESHOLD = 4
export const NFTA_LOG_LEVEL = 5

export const NFTA_LIMIT_RATE = 1
export const NFTA_LIMIT_UNIT = 2
export const NFTA_LIMIT_BURST = 3
export const NFTA_LIMIT_TYPE = 4
export const NFTA_LIMIT_FLAGS = 5
export const NFT_LIMIT_PKTS = 0
export const NFT_LIMIT_F_INV = 1

export const NFTA_CONNLIMIT_COUNT = 1
export const NFTA_CONNLIMIT_FLAGS = 2
export const NFT_CONNLIMIT_F_INV = 1

export const NFTA_TRACE_TABLE = 1
export const NFTA_TRACE_CHAIN = 2
export const NFTA_TRACE_RULE_HANDLE = 3
export const NFTA_TRACE_TYPE = 4
export const NFTA_TRACE_VERDICT = 5
export const NFTA_TRACE_ID = 6
export const NFTA_TRACE_NETWORK_HEADER = 8
export const NFTA_TRACE_TRANSPORT_HEADER = 9
export const NFTA_TRACE_MARK = 14
export const NFTA_TRACE_NFPROTO = 15
export const NFTA_TRACE_POLICY = 16

export const NFT_TRACETYPE_POLICY = 1
export const NFT_TRACETYPE_RETURN = 2
export const NFT_TRACETYPE_RULE = 3
