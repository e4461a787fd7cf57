// Datagrams as text, for KUBE_PROXY_NLDEBUG=1. The same tables that write and read messages name what is in them: each
// subsystem brings its own, as a vocabulary.

import type { Codec } from './attributes.ts'
import { type Message, messagesOf, decodeAcknowledgement, decodeDoneErrno } from './message.ts'
import {
  NLM_F_ACK,
  NLM_F_APPEND,
  NLM_F_CREATE,
  NLM_F_DUMP,
  NLM_F_DUMP_INTR,
  NLM_F_MULTI,
  NLMSG_DONE,
  NLMSG_ERROR,
} from './uapi/netlink.ts'

/** What a subsystem calls a type of message, and how to read what is in it; undefined for types that are not its own. */
export type Vocabulary = (type: number) => MessageWord | undefined

export interface MessageWord {
  readonly name: string
  /** What follows the header; absent for messages that have nothing in them. */
  readonly attributes?: Codec<unknown>
  /** The length of the header between netlink's own and the attributes. */
  readonly headerLength?: number
}

const REQUEST_FLAGS = { ack: NLM_F_ACK, create: NLM_F_CREATE, append: NLM_F_APPEND } as const
const ANSWER_FLAGS = { multi: NLM_F_MULTI, interrupted: NLM_F_DUMP_INTR } as const

/** One line for each message of a datagram. */
export function describeDatagram(datagram: Uint8Array, vocabulary: Vocabulary = () => undefined): string[] {
  return Array.from(messagesOf(datagram), (message) => {
    const { name, content } = describeMessage(message, vocabulary)
    return `${name} seq=${message.sequence}${describeFlags(message)}${content === undefined ? '' : ` ${toText(content)}`}`
  })
}

function describeMessage(message: Message, vocabulary: Vocabulary): { name: string; content: unknown } {
  const { type, view, start, end } = message
  if (type === NLMSG_ERROR) return { name: 'acknowledgement', content: decodeAcknowledgement(message) }
  if (type === NLMSG_DONE) return { name: 'done', content: { errno: decodeDoneErrno(message) } }
  const word = vocabulary(type)
  if (word === undefined) return { name: `message ${type}`, content: { bytes: end - start } }
  const { name, attributes, headerLength = 0 } = word
  if (attributes === undefined) return { name, content: undefined }
  const content = attributes.read(view, start + headerLength, end)
  return { name, content: content ?? { bytes: end - start - headerLength } }
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
