// Messages of ipset, whose sets rules of iptables look into. net/netfilter/ipset/ip_set_core.c

import { attr, cstring, nest, u8 } from '../netlink/attributes.ts'
import { NLM_F_ACK, NLM_F_EXCL, NLM_F_REQUEST } from '../netlink/uapi/netlink.ts'
import { NFNETLINK_V0 } from '../netlink/uapi/nfnetlink.ts'
import {
  IPSET_ATTR_PROTOCOL,
  IPSET_ATTR_SETNAME,
  IPSET_CMD_DESTROY,
  IPSET_PROTOCOL,
  NFNL_SUBSYS_IPSET,
} from './uapi.ts'
import type { Writer } from '../netlink/writer.ts'

const setAttributes = nest({ protocol: attr(IPSET_ATTR_PROTOCOL, u8), name: attr(IPSET_ATTR_SETNAME, cstring) })

/** Writes a message that destroys the set of that name. Without NLM_F_EXCL the kernel calls it done where there is none. */
export function writeDestroySet(writer: Writer, name: string): void {
  writer.beginMessage((NFNL_SUBSYS_IPSET << 8) | IPSET_CMD_DESTROY, NLM_F_REQUEST | NLM_F_ACK | NLM_F_EXCL)
  writer.u8(0)
  writer.u8(NFNETLINK_V0)
  writer.be16(0)
  setAttributes.write(writer, { protocol: IPSET_PROTOCOL, name })
  writer.endMessage()
}
