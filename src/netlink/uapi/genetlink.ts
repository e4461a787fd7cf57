// linux/genetlink.h, Linux 6.1. Only what we use; the values never change.

export const GENL_ID_CTRL = 16
export const CTRL_CMD_GETFAMILY = 3
export const CTRL_ATTR_FAMILY_ID = 1
export const CTRL_ATTR_FAMILY_NAME = 2
