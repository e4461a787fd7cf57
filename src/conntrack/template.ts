// Messages to the connection tracker that are sent for each connection: written once, then only filled in.
//
// An entry that is made before its first packet decides what is done to that: here, that its source is replaced, and put
// back in the answers. net/netfilter/nf_conntrack_netlink.c

import type { Family } from '../lib/ip.ts'
import { NLM_F_CREATE, NLM_F_EXCL } from '../netlink/uapi/netlink.ts'
import { beginNetfilterMessage } from '../netlink/nfnetlink.ts'
import { NFNL_SUBSYS_CTNETLINK } from '../netlink/uapi/nfnetlink.ts'
import { AF, MESSAGES } from './messages.ts'
import * as uapi from './uapi.ts'
import { hostPlace, PORT_AT, PORT_LENGTH } from '../system/socket-address.ts'
import { Writer } from '../netlink/writer.ts'

/** How long an entry waits for its first packet. */
const TIMEOUT_S = 10

export interface TemplateOptions {
  /** In this order, in one datagram. The kernel carries out each, whether it could do the one before or not. */
  readonly messages: readonly (keyof typeof MESSAGES)[]
  readonly family: Family
  /** The number of the transport protocol. */
  readonly protocol: number
}

/** Messages about one flow. `setFlow` changes which. */
export class ConntrackTemplate {
  readonly bytes: Uint8Array
  readonly #host: { readonly at: number; readonly length: number }
  readonly #fromAddress: number[] = []
  readonly #fromPort: number[] = []
  readonly #toAddress: number[] = []
  readonly #toPort: number[] = []
  readonly #seenAs: number[] = []

  constructor({ messages, family, protocol }: TemplateOptions) {
    const writer = new Writer(256)
    this.#host = hostPlace(family)
    for (const message of messages) this.#writeMessage(writer, message, { family, protocol })
    this.bytes = writer.written().slice()
  }

  /** Socket addresses: the real sender, the receiver, and the sender that the receiver sees. */
  setFlow(from: Uint8Array, to: Uint8Array, seenAs: Uint8Array): void {
    const { at, length } = this.#host
    this.#put(this.#fromAddress, from, at, length)
    this.#put(this.#fromPort, from, PORT_AT, PORT_LENGTH)
    this.#put(this.#toAddress, to, at, length)
    this.#put(this.#toPort, to, PORT_AT, PORT_LENGTH)
    this.#put(this.#seenAs, seenAs, at, length)
  }

  /** Copies a part of a socket address to all its places. */
  #put(places: readonly number[], value: Uint8Array, from: number, length: number): void {
    for (const at of places) for (let i = 0; i < length; i++) this.bytes[at + i] = value[from + i]!
  }

  #writeMessage(
    writer: Writer,
    message: keyof typeof MESSAGES,
    { family, protocol }: Pick<TemplateOptions, 'family' | 'protocol'>,
  ): void {
    const isNew = message === 'new'
    beginNetfilterMessage(writer, {
      subsystem: NFNL_SUBSYS_CTNETLINK,
      message: MESSAGES[message],
      family: AF[family],
      flags: isNew ? NLM_F_CREATE | NLM_F_EXCL : 0,
    })
    const original = { src: this.#fromAddress, dst: this.#toAddress, sport: this.#fromPort, dport: this.#toPort }
    writeTuple(writer, uapi.CTA_TUPLE_ORIG, { family, protocol, ...original })
    if (isNew) {
      const reply = { src: this.#toAddress, dst: this.#fromAddress, sport: this.#toPort, dport: this.#fromPort }
      writeTuple(writer, uapi.CTA_TUPLE_REPLY, { family, protocol, ...reply })
      writer.begin(uapi.CTA_TIMEOUT)
      writer.be32(TIMEOUT_S)
      writer.end()
      this.#writeTranslation(writer, family)
    }
    writer.endMessage()
  }

  #writeTranslation(writer: Writer, family: Family): void {
    writer.beginNested(uapi.CTA_NAT_SRC)
    const ends =
      family === 4 ? [uapi.CTA_NAT_V4_MINIP, uapi.CTA_NAT_V4_MAXIP] : [uapi.CTA_NAT_V6_MINIP, uapi.CTA_NAT_V6_MAXIP]
    for (const type of ends) writeField(writer, type, { length: this.#host.length, places: this.#seenAs })
    writer.end()
  }
}

interface TupleFields {
  readonly family: Family
  readonly protocol: number
  /** Where the positions of these fields are noted. */
  readonly src: number[]
  readonly dst: number[]
  readonly sport: number[]
  readonly dport: number[]
}

function writeTuple(writer: Writer, type: number, { family, protocol, src, dst, sport, dport }: TupleFields): void {
  const { length } = hostPlace(family)
  writer.beginNested(type)
  writer.beginNested(uapi.CTA_TUPLE_IP)
  writeField(writer, family === 4 ? uapi.CTA_IP_V4_SRC : uapi.CTA_IP_V6_SRC, { length, places: src })
  writeField(writer, family === 4 ? uapi.CTA_IP_V4_DST : uapi.CTA_IP_V6_DST, { length, places: dst })
  writer.end()
  writer.beginNested(uapi.CTA_TUPLE_PROTO)
  writer.begin(uapi.CTA_PROTO_NUM)
  writer.u8(protocol)
  writer.end()
  writeField(writer, uapi.CTA_PROTO_SRC_PORT, { length: 2, places: sport })
  writeField(writer, uapi.CTA_PROTO_DST_PORT, { length: 2, places: dport })
  writer.end()
  writer.end()
}

/** An attribute that is filled in later; notes where. */
function writeField(writer: Writer, type: number, { length, places }: { length: number; places: number[] }): void {
  writer.begin(type)
  places.push(writer.length)
  const at = writer.reserve(length)
  writer.bytes.fill(0, at, at + length)
  writer.end()
}
