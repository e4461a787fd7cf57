// Messages of nfacct, whose objects count packets for rules of iptables. net/netfilter/nfnetlink_acct.c

import { attr, be64number, cstring, nest, opt } from '../netlink/attributes.ts'
import type { Message } from '../netlink/message.ts'
import { NLM_F_REQUEST } from '../netlink/uapi/netlink.ts'
import { NFNETLINK_V0 } from '../netlink/uapi/nfnetlink.ts'
import {
  NFACCT_NAME,
  NFACCT_PKTS,
  NFNL_MSG_ACCT_DEL,
  NFNL_MSG_ACCT_GET,
  NFNL_MSG_ACCT_NEW,
  NFNL_SUBSYS_ACCT,
} from './uapi.ts'
import type { Writer } from '../netlink/writer.ts'

const MESSAGES = { new: NFNL_MSG_ACCT_NEW, get: NFNL_MSG_ACCT_GET, delete: NFNL_MSG_ACCT_DEL } as const

const NFGENMSG_LENGTH = 4

const counterAttributes = nest({ name: attr(NFACCT_NAME, cstring), packets: opt(NFACCT_PKTS, be64number) })

/** Writes a message about the counter of that name. */
export function writeCounterMessage(
  writer: Writer,
  { message, flags }: { message: keyof typeof MESSAGES; flags: number },
  name: string,
): void {
  writer.beginMessage((NFNL_SUBSYS_ACCT << 8) | MESSAGES[message], NLM_F_REQUEST | flags)
  writer.u8(0)
  writer.u8(NFNETLINK_V0)
  writer.be16(0)
  counterAttributes.write(writer, { name })
  writer.endMessage()
}

/** How many packets it counted. */
export function decodePackets({ view, start, end }: Message): number | undefined {
  return counterAttributes.read(view, start + NFGENMSG_LENGTH, end)?.packets
}
