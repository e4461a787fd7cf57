// What the kernel reports of a packet that is traced: rule by rule, which it met and what that did. net/netfilter/nf_tables_trace.c

import { decodeNetfilterMessage } from '../../netlink/nfnetlink.ts'
import { type Bytes, formatIp } from '../../lib/ip.ts'
import { attr, be32, be64, bytes, cstring, mapped, named, nest, opt, sbe32 } from '../../netlink/attributes.ts'
import type { Message } from '../../netlink/message.ts'
import { messageType } from './messages.ts'
import * as uapi from './uapi.ts'

/** The families that tables can have, by the kernel's numbers. */
export const TABLE_FAMILIES: ReadonlyMap<number, string> = new Map([
  [1, 'inet'],
  [2, 'ip'],
  [3, 'arp'],
  [5, 'netdev'],
  [7, 'bridge'],
  [10, 'ip6'],
])

export interface TraceEvent {
  /** The same for all reports of one packet. */
  readonly id: number
  /** Of the table. */
  readonly family: number
  readonly table: string
  readonly chain: string
  /** It met a rule, came to the end of a chain, or to that of a base chain. */
  readonly type: 'rule' | 'return' | 'policy'
  readonly handle?: bigint | undefined
  /** What came of it: `accept`, `jump services`. */
  readonly verdict?: string | undefined
  readonly policy?: 'accept' | 'drop' | undefined
  readonly mark?: number | undefined
  /** As the packet is now; reported at the first rule of each base chain. */
  readonly packet?: TracedPacket | undefined
}

export interface TracedPacket {
  readonly source: string
  readonly sourcePort: number
  readonly destination: string
  readonly destinationPort: number
}

const code = named(sbe32, {
  drop: uapi.NF_DROP,
  accept: uapi.NF_ACCEPT,
  stolen: uapi.NF_STOLEN,
  queue: uapi.NF_QUEUE,
  repeat: uapi.NF_REPEAT,
  continue: uapi.NFT_CONTINUE,
  break: uapi.NFT_BREAK,
  jump: uapi.NFT_JUMP,
  goto: uapi.NFT_GOTO,
  return: uapi.NFT_RETURN,
})

const verdict = mapped(
  nest({ code: attr(uapi.NFTA_VERDICT_CODE, code), chain: opt(uapi.NFTA_VERDICT_CHAIN, cstring) }),
  (text: string) => ({ code: text as 'accept' }),
  ({ code: word, chain }): string | undefined => (chain === undefined ? word : `${word} ${chain}`),
)

export const traceAttributes = nest({
  id: attr(uapi.NFTA_TRACE_ID, be32),
  table: attr(uapi.NFTA_TRACE_TABLE, cstring),
  chain: attr(uapi.NFTA_TRACE_CHAIN, cstring),
  type: attr(
    uapi.NFTA_TRACE_TYPE,
    named(be32, {
      policy: uapi.NFT_TRACETYPE_POLICY,
      return: uapi.NFT_TRACETYPE_RETURN,
      rule: uapi.NFT_TRACETYPE_RULE,
    }),
  ),
  handle: opt(uapi.NFTA_TRACE_RULE_HANDLE, be64),
  verdict: opt(uapi.NFTA_TRACE_VERDICT, verdict),
  policy: opt(uapi.NFTA_TRACE_POLICY, named(be32, { drop: uapi.NF_DROP, accept: uapi.NF_ACCEPT })),
  mark: opt(uapi.NFTA_TRACE_MARK, be32),
  network: opt(uapi.NFTA_TRACE_NETWORK_HEADER, bytes),
  transport: opt(uapi.NFTA_TRACE_TRANSPORT_HEADER, bytes),
  nfproto: opt(uapi.NFTA_TRACE_NFPROTO, be32),
})

/** Undefined for messages of another kind, and for those that cannot be decoded. */
export function decodeTrace(message: Message): TraceEvent | undefined {
  if (message.type !== messageType('trace')) return undefined
  const read = decodeNetfilterMessage(traceAttributes, message)
  if (read === undefined) return undefined
  const { network, transport, nfproto: _, ...event } = read
  const packet = network === undefined || transport === undefined ? undefined : packetOf(network, transport)
  return { family: message.view.getUint8(message.start), ...event, ...(packet === undefined ? {} : { packet }) }
}

/** The kernel sends the first 40 bytes of the one header and 20 of the other: enough for addresses and ports. */
function packetOf(network: Bytes, transport: Bytes): TracedPacket | undefined {
  const [at, length] = network.charCodeAt(0) >> 4 === 4 ? [12, 4] : [8, 16]
  if (network.length < at + 2 * length || transport.length < 4) return undefined
  const port = (offset: number) => (transport.charCodeAt(offset) << 8) | transport.charCodeAt(offset + 1)
  return {
    source: formatIp(network.slice(at, at + length)),
    sourcePort: port(0),
    destination: formatIp(network.slice(at + length, at + 2 * length)),
    destinationPort: port(2),
  }
}
