// Datagrams in words, for KUBE_PROXY_NLDEBUG=1. The same tables that write and read messages name what is in them.

import type { Codec } from './attributes.ts'
import { flowAttributes } from '../conntrack/messages.ts'
import { type Message, messagesOf, decodeAcknowledgement, decodeDoneErrno } from './message.ts'
import { chainAttributes } from '../nftables/bytes/chain.ts'
import { elementListAttributes } from '../nftables/bytes/element.ts'
import { generationAttributes, MESSAGE, type MessageName, NFGENMSG_LENGTH } from '../nftables/bytes/messages.ts'
import { ruleAttributes } from '../nftables/bytes/rule.ts'
import { setAttributes } from '../nftables/bytes/set.ts'
import { tableAttributes } from '../nftables/bytes/table.ts'
import {
  NETLINK_NETFILTER,
  NLM_F_ACK,
  NLM_F_APPEND,
  NLM_F_CREATE,
  NLM_F_DUMP,
  NLM_F_DUMP_INTR,
  NLM_F_MULTI,
  NLMSG_DONE,
  NLMSG_ERROR,
} from './uapi/netlink.ts'
import {
  NFNL_MSG_BATCH_BEGIN,
  NFNL_MSG_BATCH_END,
  NFNL_SUBSYS_CTNETLINK,
  NFNL_SUBSYS_NFTABLES,
} from './uapi/nfnetlink.ts'

type Attributes = Codec<unknown>

const NFTABLES: Readonly<Record<MessageName, Attributes>> = {
  newTable: tableAttributes,
  getTable: tableAttributes,
  deleteTable: tableAttributes,
  newChain: chainAttributes,
  getChain: chainAttributes,
  deleteChain: chainAttributes,
  newRule: ruleAttributes,
  getRule: ruleAttributes,
  deleteRule: ruleAttributes,
  newSet: setAttributes,
  getSet: setAttributes,
  deleteSet: setAttributes,
  newElements: elementListAttributes,
  getElements: elementListAttributes,
  deleteElements: elementListAttributes,
  newGeneration: generationAttributes,
  getGeneration: generationAttributes,
}

const CONNTRACK: Readonly<Record<number, string>> = { 0: 'newFlow', 1: 'getFlow', 2: 'deleteFlow' }

const REQUEST_FLAGS = { ack: NLM_F_ACK, create: NLM_F_CREATE, append: NLM_F_APPEND } as const
const ANSWER_FLAGS = { multi: NLM_F_MULTI, interrupted: NLM_F_DUMP_INTR } as const

/** One line for each message of a datagram. */
export function describeDatagram(protocol: number, datagram: Uint8Array): string[] {
  return Array.from(messagesOf(datagram), (message) => {
    const { name, content } = describeMessage(protocol, message)
    return `${name} seq=${message.sequence}${describeFlags(message)}${content === undefined ? '' : ` ${toText(content)}`}`
  })
}

function describeMessage(protocol: number, message: Message): { name: string; content: unknown } {
  const { type } = message
  if (type === NLMSG_ERROR) return { name: 'acknowledgement', content: decodeAcknowledgement(message) }
  if (type === NLMSG_DONE) return { name: 'done', content: { errno: decodeDoneErrno(message) } }
  if (protocol === NETLINK_NETFILTER) return describeNetfilter(message)
  return { name: `message ${type}`, content: { bytes: message.end - message.start } }
}

function describeNetfilter(message: Message): { name: string; content: unknown } {
  const { type } = message
  if (type === NFNL_MSG_BATCH_BEGIN) return { name: 'batchBegin', content: undefined }
  if (type === NFNL_MSG_BATCH_END) return { name: 'batchEnd', content: undefined }
  const [subsystem, number] = [type >> 8, type & 0xff]
  if (subsystem === NFNL_SUBSYS_CTNETLINK) {
    return { name: CONNTRACK[number] ?? `flow message ${number}`, content: read(flowAttributes, message) }
  }
  const names = Object.keys(MESSAGE) as MessageName[]
  const name = subsystem === NFNL_SUBSYS_NFTABLES ? names.find((key) => MESSAGE[key] === number) : undefined
  if (name === undefined) return { name: `netfilter message ${type}`, content: { bytes: message.end - message.start } }
  return { name, content: read(NFTABLES[name], message) }
}

function read(codec: Attributes, { view, start, end }: Message): unknown {
  return codec.read(view, start + NFGENMSG_LENGTH, end) ?? { bytes: end - start - NFGENMSG_LENGTH }
}

/** Requests and answers give the same bits other meanings; a dump is two bits at once. */
function describeFlags({ flags, port }: Message): string {
  const isRequest = port === 0 && (flags & 1) !== 0
  const names = Object.entries(isRequest ? REQUEST_FLAGS : ANSWER_FLAGS)
    .filter(([, bit]) => (flags & bit) === bit)
    .map(([name]) => name)
  if (isRequest && (flags & NLM_F_DUMP) === NLM_F_DUMP) names.push('dump')
  return names.length === 0 ? '' : ` ${names.join(',')}`
}

/** JSON, with bytes that are no text in hexadecimal. */
function toText(content: unknown): string {
  return JSON.stringify(content, (_, value: unknown) => {
    if (typeof value === 'bigint') return String(value)
    return typeof value === 'string' && /[^\x20-\x7e]/.test(value) ? toHex(value) : value
  })
}

function toHex(bytes: string): string {
  return `0x${Array.from(bytes, (byte) => byte.charCodeAt(0).toString(16).padStart(2, '0')).join('')}`
}
