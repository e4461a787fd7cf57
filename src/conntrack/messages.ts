// Messages of the connection tracker (ctnetlink). net/netfilter/nf_conntrack_netlink.c

import type { Bytes, Family } from '../lib/ip.ts'
import { attr, be16, be32, be64, be64number, bytes, type Infer, ne32, nest, opt, u8 } from '../netlink/attributes.ts'
import { beginNetfilterMessage } from '../netlink/nfnetlink.ts'
import { NFNL_SUBSYS_CTNETLINK } from '../netlink/uapi/nfnetlink.ts'
import * as uapi from './uapi.ts'
import type { Writer } from '../netlink/writer.ts'

export const AF: Readonly<Record<Family, number>> = { 4: 2, 6: 10 }

export const MESSAGES = {
  new: uapi.IPCTNL_MSG_CT_NEW,
  get: uapi.IPCTNL_MSG_CT_GET,
  delete: uapi.IPCTNL_MSG_CT_DELETE,
} as const

// CTA_FILTER_F_* of net/netfilter/nf_internals.h: which parts of the tuple are compared.
const FILTER_BY_SOURCE = 1 << 0
const FILTER_BY_PROTOCOL = 1 << 3
const FILTER_BY_SOURCE_PORT = 1 << 4

const tupleAttributes = nest({
  ip: opt(
    uapi.CTA_TUPLE_IP,
    nest({
      src4: opt(uapi.CTA_IP_V4_SRC, bytes),
      dst4: opt(uapi.CTA_IP_V4_DST, bytes),
      src6: opt(uapi.CTA_IP_V6_SRC, bytes),
      dst6: opt(uapi.CTA_IP_V6_DST, bytes),
    }),
  ),
  protocol: attr(
    uapi.CTA_TUPLE_PROTO,
    nest({
      number: attr(uapi.CTA_PROTO_NUM, u8),
      sport: opt(uapi.CTA_PROTO_SRC_PORT, be16),
      dport: opt(uapi.CTA_PROTO_DST_PORT, be16),
    }),
  ),
})

export const flowAttributes = nest({
  original: opt(uapi.CTA_TUPLE_ORIG, tupleAttributes),
  reply: opt(uapi.CTA_TUPLE_REPLY, tupleAttributes),
  status: opt(uapi.CTA_STATUS, be32),
  timeoutS: opt(uapi.CTA_TIMEOUT, be32),
  id: opt(uapi.CTA_ID, be32),
  zone: opt(uapi.CTA_ZONE, be16),
  filter: opt(
    uapi.CTA_FILTER,
    nest({ original: opt(uapi.CTA_FILTER_ORIG_FLAGS, ne32), reply: opt(uapi.CTA_FILTER_REPLY_FLAGS, ne32) }),
  ),
})

const tcpInfo = nest({ tcp: opt(uapi.CTA_PROTOINFO_TCP, nest({ state: opt(uapi.CTA_PROTOINFO_TCP_STATE, u8) })) })

/** What the tracker knows of a TCP connection. */
export const tcpAttributes = nest({ info: opt(uapi.CTA_PROTOINFO, tcpInfo) })

const counters = nest({
  packets: opt(uapi.CTA_COUNTERS_PACKETS, be64number),
  bytes: opt(uapi.CTA_COUNTERS_BYTES, be64number),
})

/** What is counted of a connection, where net.netfilter.nf_conntrack_acct is on. */
export const countedAttributes = nest({
  sent: opt(uapi.CTA_COUNTERS_ORIG, counters),
  received: opt(uapi.CTA_COUNTERS_REPLY, counters),
})

/** What a notification says of a connection. */
export const eventAttributes = nest({
  original: opt(uapi.CTA_TUPLE_ORIG, tupleAttributes),
  reply: opt(uapi.CTA_TUPLE_REPLY, tupleAttributes),
  status: opt(uapi.CTA_STATUS, be32),
  id: opt(uapi.CTA_ID, be32),
  info: opt(uapi.CTA_PROTOINFO, tcpInfo),
  sent: opt(uapi.CTA_COUNTERS_ORIG, counters),
  received: opt(uapi.CTA_COUNTERS_REPLY, counters),
  /** Nanoseconds since 1970, where net.netfilter.nf_conntrack_timestamp is on. */
  times: opt(
    uapi.CTA_TIMESTAMP,
    nest({ start: opt(uapi.CTA_TIMESTAMP_START, be64), stop: opt(uapi.CTA_TIMESTAMP_STOP, be64) }),
  ),
})

export type FlowAttributes = Infer<typeof flowAttributes>
export type TupleAttributes = Infer<typeof tupleAttributes>

/** One direction of a flow, addresses in kernel layout. */
export interface TupleBytes {
  readonly src: Bytes
  readonly dst: Bytes
  readonly protocol: number
  readonly sport: number
  readonly dport: number
}

/** Writes a message about flows of a family. */
export function writeFlowMessage(
  writer: Writer,
  { message, family, flags }: { message: keyof typeof MESSAGES; family: Family; flags: number },
  attributes: FlowAttributes,
): void {
  beginNetfilterMessage(writer, {
    subsystem: NFNL_SUBSYS_CTNETLINK,
    message: MESSAGES[message],
    family: AF[family],
    flags,
  })
  flowAttributes.write(writer, attributes)
  writer.endMessage()
}

/** Lets the kernel leave out flows of other protocols. Kernels before 5.8 send them all. */
export function protocolFilter(protocol: number): FlowAttributes {
  return { original: { protocol: { number: protocol } }, filter: { original: FILTER_BY_PROTOCOL, reply: 0 } }
}

/**
 * The same, and those that another endpoint answers. With IPv6 only the port is compared: the kernel leaves out those whose
 * address is equal instead of the others (ctnetlink_filter_match_tuple(), Linux 5.8 to 6.18 at least).
 */
export function answererFilter({
  src,
  sport,
  protocol,
}: Pick<TupleBytes, 'src' | 'sport' | 'protocol'>): FlowAttributes {
  const byPort = FILTER_BY_PROTOCOL | FILTER_BY_SOURCE_PORT
  const isIpv4 = src.length === 4
  return {
    reply: { protocol: { number: protocol, sport }, ...(isIpv4 && { ip: { src4: src } }) },
    filter: { original: 0, reply: isIpv4 ? byPort | FILTER_BY_SOURCE : byPort },
  }
}

export function tupleToAttributes({ src, dst, protocol, sport, dport }: TupleBytes): TupleAttributes {
  const ip = src.length === 4 ? { src4: src, dst4: dst } : { src6: src, dst6: dst }
  return { ip, protocol: { number: protocol, sport, dport } }
}

/** Ports are 0 where the protocol has none. Undefined when there is no address. */
export function tupleFromAttributes({ ip, protocol }: TupleAttributes): TupleBytes | undefined {
  const src = ip?.src4 ?? ip?.src6
  const dst = ip?.dst4 ?? ip?.dst6
  if (src === undefined || dst === undefined) return undefined
  return { src, dst, protocol: protocol.number, sport: protocol.sport ?? 0, dport: protocol.dport ?? 0 }
}
