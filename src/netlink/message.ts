// Reading datagrams: the messages in them, and what a message that reports an error says. The layout is struct nlmsghdr
// and struct nlmsgerr of linux/netlink.h.

import { cstring, ne32, nest, opt } from './attributes.ts'
import { NLM_F_ACK_TLVS, NLM_F_CAPPED, NLMSGERR_ATTR_MSG, NLMSGERR_ATTR_OFFS } from './uapi/netlink.ts'
import { LITTLE_ENDIAN } from '../lib/endian.ts'
import { align4 } from './writer.ts'

export const MESSAGE_HEADER = 16

export interface Message {
  readonly type: number
  readonly flags: number
  readonly sequence: number
  /** The port of the socket that it answers, or whose request it reports. */
  readonly port: number
  readonly view: DataView
  /** Where the content starts and ends, header excluded. */
  readonly start: number
  readonly end: number
}

/** What the kernel says about a request that failed; errno 0 acknowledges one that did not. */
export interface Acknowledgement {
  readonly sequence: number
  /** Positive. */
  readonly errno: number
  readonly extack: string | undefined
  /** Where in the request the attribute stands that the kernel found fault with. */
  readonly offset: number | undefined
}

/** The messages of a datagram. What is left over at the end, too short for its own length, is not a message. */
export function* messagesOf(datagram: Uint8Array): Generator<Message> {
  const view = new DataView(datagram.buffer, datagram.byteOffset, datagram.byteLength)
  for (let at = 0; at + MESSAGE_HEADER <= view.byteLength;) {
    const length = view.getUint32(at, LITTLE_ENDIAN)
    if (length < MESSAGE_HEADER || at + length > view.byteLength) return
    yield {
      type: view.getUint16(at + 4, LITTLE_ENDIAN),
      flags: view.getUint16(at + 6, LITTLE_ENDIAN),
      sequence: view.getUint32(at + 8, LITTLE_ENDIAN),
      port: view.getUint32(at + 12, LITTLE_ENDIAN),
      view,
      start: at + MESSAGE_HEADER,
      end: at + length,
    }
    at += align4(length)
  }
}

/** Numbers the messages in `bytes` from `first` on and returns how many there are. */
export function numberMessages(bytes: Uint8Array, first: number): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let count = 0
  for (let at = 0; at + MESSAGE_HEADER <= view.byteLength; count++) {
    view.setUint32(at + 8, first + count, LITTLE_ENDIAN)
    at += view.getUint32(at, LITTLE_ENDIAN)
  }
  return count
}

const extackAttributes = nest({
  text: opt(NLMSGERR_ATTR_MSG, cstring),
  offset: opt(NLMSGERR_ATTR_OFFS, ne32),
})

/** Reads a message of type NLMSG_ERROR. */
export function decodeAcknowledgement({ view, flags, sequence, start, end }: Message): Acknowledgement {
  const errno = 0 - view.getInt32(start, LITTLE_ENDIAN)
  const quoted = view.getUint32(start + 4, LITTLE_ENDIAN)
  // The request is quoted whole, unless its header alone was asked for.
  const attributes = start + 4 + ((flags & NLM_F_CAPPED) !== 0 ? MESSAGE_HEADER : align4(quoted))
  const extack = (flags & NLM_F_ACK_TLVS) === 0 ? undefined : extackAttributes.read(view, attributes, end)
  return { sequence, errno, extack: extack?.text, offset: extack?.offset }
}

/** The error in a message of type NLMSG_DONE, which ends a dump; 0 when there is none. */
export function decodeDoneErrno({ view, start, end }: Message): number {
  return end - start >= 4 ? 0 - view.getInt32(start, LITTLE_ENDIAN) : 0
}
