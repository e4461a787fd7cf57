// The messages of nftables: their numbers, what they carry, and how they are begun.

import type { NftFamily } from '../types.ts'
import { attr, be32, cstring, type Infer, nest, opt } from '../../netlink/attributes.ts'
import { NLM_F_REQUEST } from '../../netlink/uapi/netlink.ts'
import {
  NFTA_GEN_ID,
  NFTA_GEN_PROC_NAME,
  NFTA_GEN_PROC_PID,
  NFT_MSG_DELCHAIN,
  NFT_MSG_DELRULE,
  NFT_MSG_DELSET,
  NFT_MSG_DELSETELEM,
  NFT_MSG_DELTABLE,
  NFT_MSG_DESTROYSETELEM,
  NFT_MSG_GETCHAIN,
  NFT_MSG_GETGEN,
  NFT_MSG_GETRULE,
  NFT_MSG_GETSET,
  NFT_MSG_GETSETELEM,
  NFT_MSG_GETTABLE,
  NFT_MSG_NEWCHAIN,
  NFT_MSG_NEWGEN,
  NFT_MSG_NEWRULE,
  NFT_MSG_NEWSET,
  NFT_MSG_NEWSETELEM,
  NFT_MSG_NEWTABLE,
  NFT_MSG_TRACE,
} from './uapi.ts'
import {
  NFNETLINK_V0,
  NFNL_MSG_BATCH_BEGIN,
  NFNL_MSG_BATCH_END,
  NFNL_SUBSYS_NFTABLES,
} from '../../netlink/uapi/nfnetlink.ts'
import type { Writer } from '../../netlink/writer.ts'
import { NFPROTO } from './family.ts'

export const MESSAGE = {
  newTable: NFT_MSG_NEWTABLE,
  getTable: NFT_MSG_GETTABLE,
  deleteTable: NFT_MSG_DELTABLE,
  newChain: NFT_MSG_NEWCHAIN,
  getChain: NFT_MSG_GETCHAIN,
  deleteChain: NFT_MSG_DELCHAIN,
  newRule: NFT_MSG_NEWRULE,
  getRule: NFT_MSG_GETRULE,
  deleteRule: NFT_MSG_DELRULE,
  newSet: NFT_MSG_NEWSET,
  getSet: NFT_MSG_GETSET,
  deleteSet: NFT_MSG_DELSET,
  newElements: NFT_MSG_NEWSETELEM,
  getElements: NFT_MSG_GETSETELEM,
  deleteElements: NFT_MSG_DELSETELEM,
  destroyElements: NFT_MSG_DESTROYSETELEM,
  newGeneration: NFT_MSG_NEWGEN,
  getGeneration: NFT_MSG_GETGEN,
  trace: NFT_MSG_TRACE,
} as const

export type MessageName = keyof typeof MESSAGE

/** struct nfgenmsg, between the message's header and its attributes. */
export const NFGENMSG_LENGTH = 4

export const generationAttributes = nest({
  id: attr(NFTA_GEN_ID, be32),
  pid: opt(NFTA_GEN_PROC_PID, be32),
  process: opt(NFTA_GEN_PROC_NAME, cstring),
})

export type Generation = Infer<typeof generationAttributes>

/** The netlink type of a message: the subsystem, then the message. */
export function messageType(name: MessageName): number {
  return (NFNL_SUBSYS_NFTABLES << 8) | MESSAGE[name]
}

/** Opens a message to nftables; NLM_F_REQUEST goes without saying. Close it with endMessage(). */
export function beginNftablesMessage(writer: Writer, name: MessageName, family: NftFamily, flags = 0): void {
  writer.beginMessage(messageType(name), NLM_F_REQUEST | flags)
  writer.u8(NFPROTO[family])
  writer.u8(NFNETLINK_V0)
  writer.be16(0)
}

/** Between these two messages, all or nothing takes effect. */
export function writeBatchMark(writer: Writer, mark: 'begin' | 'end'): void {
  writer.beginMessage(mark === 'begin' ? NFNL_MSG_BATCH_BEGIN : NFNL_MSG_BATCH_END, NLM_F_REQUEST)
  writer.u8(0)
  writer.u8(NFNETLINK_V0)
  writer.be16(NFNL_SUBSYS_NFTABLES)
  writer.endMessage()
}
