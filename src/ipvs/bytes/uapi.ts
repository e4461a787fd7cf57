// linux/ip_vs.h, Linux 6.1. Only what we use; the values never change.

export const IPVS_GENL_NAME = 'IPVS'
export const IPVS_GENL_VERSION = 1

export const IPVS_CMD_NEW_SERVICE = 1
export const IPVS_CMD_SET_SERVICE = 2
export const IPVS_CMD_DEL_SERVICE = 3
export const IPVS_CMD_GET_SERVICE = 4
export const IPVS_CMD_NEW_DEST = 5
export const IPVS_CMD_SET_DEST = 6
export const IPVS_CMD_DEL_DEST = 7
export const IPVS_CMD_GET_DEST = 8
export const IPVS_CMD_SET_CONFIG = 12
export const IPVS_CMD_GET_CONFIG = 13
export const IPVS_CMD_GET_INFO = 15

export const IPVS_CMD_ATTR_SERVICE = 1
export const IPVS_CMD_ATTR_DEST = 2
export const IPVS_CMD_ATTR_TIMEOUT_TCP = 4
export const IPVS_CMD_ATTR_TIMEOUT_TCP_FIN = 5
export const IPVS_CMD_ATTR_TIMEOUT_UDP = 6

export const IPVS_SVC_ATTR_AF = 1
export const IPVS_SVC_ATTR_PROTOCOL = 2
export const IPVS_SVC_ATTR_ADDR = 3
export const IPVS_SVC_ATTR_PORT = 4
export const IPVS_SVC_ATTR_SCHED_NAME = 6
export const IPVS_SVC_ATTR_FLAGS = 7
export const IPVS_SVC_ATTR_TIMEOUT = 8
export const IPVS_SVC_ATTR_NETMASK = 9

export const IPVS_DEST_ATTR_ADDR = 1
export const IPVS_DEST_ATTR_PORT = 2
export const IPVS_DEST_ATTR_FWD_METHOD = 3
export const IPVS_DEST_ATTR_WEIGHT = 4
export const IPVS_DEST_ATTR_U_THRESH = 5
export const IPVS_DEST_ATTR_L_THRESH = 6
export const IPVS_DEST_ATTR_ACTIVE_CONNS = 7
export const IPVS_DEST_ATTR_INACT_CONNS = 8
export const IPVS_DEST_ATTR_STATS = 10
export const IPVS_DEST_ATTR_ADDR_FAMILY = 11
export const IPVS_DEST_ATTR_STATS64 = 12

export const IPVS_STATS_ATTR_CONNS = 1
export const IPVS_STATS_ATTR_INPKTS = 2
export const IPVS_STATS_ATTR_OUTPKTS = 3
export const IPVS_STATS_ATTR_INBYTES = 4
export const IPVS_STATS_ATTR_OUTBYTES = 5

export const IPVS_INFO_ATTR_VERSION = 1
export const IPVS_INFO_ATTR_CONN_TAB_SIZE = 2

export const IP_VS_SVC_F_PERSISTENT = 0x01
export const IP_VS_SVC_F_SCHED_FLAGS = 0x38

export const IP_VS_CONN_F_FWD_MASK = 0x07
export const IP_VS_CONN_F_MASQ = 0
