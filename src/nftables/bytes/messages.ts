// The messages of nftables: their numbers, what they carry, and how they are begun.

import type { NftFamily } from '../types.ts'
import { attr, be32, cstring, nest, opt } from '../../netlink/attributes.ts'
import * as uapi from './uapi.ts'
import { NFNL_MSG_BATCH_BEGIN, NFNL_MSG_BATCH_END, NFNL_SUBSYS_NFTABLES } from '../../netlink/uapi/nfnetlink.ts'
import { beginNetfilterMessage } from '../../netlink/nfnetlink.ts'
import type { Writer } from '../../netlink/writer.ts'
import { NFPROTO } from './family.ts'

export const MESSAGE = {
  newTable: uapi.NFT_MSG_NEWTABLE,
  getTable: uapi.NFT_MSG_GETTABLE,
  deleteTable: uapi.NFT_MSG_DELTABLE,
  newChain: uapi.NFT_MSG_NEWCHAIN,
  getChain: uapi.NFT_MSG_GETCHAIN,
  deleteChain: uapi.NFT_MSG_DELCHAIN,
  newRule: uapi.NFT_MSG_NEWRULE,
  getRule: uapi.NFT_MSG_GETRULE,
  deleteRule: uapi.NFT_MSG_DELRULE,
  newSet: uapi.NFT_MSG_NEWSET,
  getSet: uapi.NFT_MSG_GETSET,
  deleteSet: uapi.NFT_MSG_DELSET,
  newElements: uapi.NFT_MSG_NEWSETELEM,
  getElements: uapi.NFT_MSG_GETSETELEM,
  deleteElements: uapi.NFT_MSG_DELSETELEM,
  destroyElements: uapi.NFT_MSG_DESTROYSETELEM,
  newGeneration: uapi.NFT_MSG_NEWGEN,
  getGeneration: uapi.NFT_MSG_GETGEN,
  trace: uapi.NFT_MSG_TRACE,
} as const

export type MessageName = keyof typeof MESSAGE

export const generationAttributes = nest({
  id: attr(uapi.NFTA_GEN_ID, be32),
  pid: opt(uapi.NFTA_GEN_PROC_PID, be32),
  process: opt(uapi.NFTA_GEN_PROC_NAME, cstring),
})

/** The netlink type of a message: the subsystem, then the message. */
export function messageType(name: MessageName): number {
  return (NFNL_SUBSYS_NFTABLES << 8) | MESSAGE[name]
}

/** Opens a message to nftables, about tables of one family or of all (0). Close it with endMessage(). */
export function beginNftablesMessage(writer: Writer, name: MessageName, family: NftFamily | number, flags = 0): void {
  beginNetfilterMessage(writer, {
    subsystem: NFNL_SUBSYS_NFTABLES,
    message: MESSAGE[name],
    family: typeof family === 'number' ? family : NFPROTO[family],
    flags,
  })
}

/** Between these two messages, all or nothing takes effect. */
export function writeBatchMark(writer: Writer, mark: 'begin' | 'end'): void {
  const message = mark === 'begin' ? NFNL_MSG_BATCH_BEGIN : NFNL_MSG_BATCH_END
  beginNetfilterMessage(writer, { subsystem: 0, message, resource: NFNL_SUBSYS_NFTABLES })
  writer.endMessage()
}
