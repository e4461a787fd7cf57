// Connections that begin and end: a filter in the kernel keeps back all that happens between.

import { filterFlowEvents } from '../bpf/packet-filter.ts'
import type { Family } from '../lib/ip.ts'
import { NetlinkClient } from '../netlink/client.ts'
import type { Message } from '../netlink/message.ts'
import { decodeNetfilterMessage } from '../netlink/nfnetlink.ts'
import { NetlinkSocket } from '../netlink/socket.ts'
import { NETLINK_NETFILTER, NLM_F_CREATE, NLM_F_DUMP } from '../netlink/uapi/netlink.ts'
import { Writer } from '../netlink/writer.ts'
import { countsFrom, type FlowCounts, type FlowTuple, tupleFromBytes } from './driver.ts'
import { AF, eventAttributes, tupleFromAttributes, writeFlowMessage } from './messages.ts'
import * as uapi from './uapi.ts'
import { conntrackVocabulary } from './vocabulary.ts'
import { kindOf, watchFlowMessages } from './watch.ts'

/** A connection begins, is about to end, or is forgotten by the kernel. */
export interface EndEvent {
  readonly kind: 'begun' | 'closing' | 'gone'
  readonly family: Family
  /** The number of the transport protocol. */
  readonly protocol: number
  readonly original: FlowTuple
  readonly reply: FlowTuple
  readonly id: number
  readonly isAnswered: boolean
  /** TCP_CONNTRACK_*; undefined for other protocols, and where the kernel does not say. */
  readonly tcpState: number | undefined
  /** Where net.netfilter.nf_conntrack_acct is on, and only when it is gone. */
  readonly counts: FlowCounts | undefined
  /** Where net.netfilter.nf_conntrack_timestamp is on, and only when it is gone. Milliseconds since 1970. */
  readonly startMs: number | undefined
  readonly stopMs: number | undefined
}

export interface EndsOptions {
  readonly onEvent: (event: EndEvent) => void
  /** Some were lost: more came than could be read. */
  readonly onLost: () => void
  /** Only connections whose destination was translated by rules. What IPVS translates does not count as that. */
  readonly translatedOnly: boolean
}

export function watchEnds({ onEvent, onLost, translatedOnly }: EndsOptions): { close(): void } {
  return watchFlowMessages({
    onMessage: (message) => {
      const event = decodeEvent(message)
      if (event !== undefined) onEvent(event)
    },
    onLost,
    filter: (fd) =>
      filterFlowEvents(fd, {
        destroyed: uapi.IPCTNL_MSG_CT_DELETE,
        createFlag: NLM_F_CREATE >> 8,
        status: uapi.CTA_STATUS,
        statusBit: translatedOnly ? uapi.IPS_DST_NAT : undefined,
        tcpState: [uapi.CTA_PROTOINFO, uapi.CTA_PROTOINFO_TCP, uapi.CTA_PROTOINFO_TCP_STATE],
        closed: uapi.TCP_CONNTRACK_TIME_WAIT,
        reset: uapi.TCP_CONNTRACK_CLOSE,
      }),
  })
}

/** The connections that are open now, as if they began. Other work gets its turns meanwhile. */
export async function readOpen(onEvent: (event: EndEvent) => void): Promise<void> {
  const socket = new NetlinkSocket(NETLINK_NETFILTER, { receiveBuffer: 4 << 20, vocabulary: conntrackVocabulary })
  try {
    const client = new NetlinkClient(socket.exchange)
    for (const family of [4, 6] as const) {
      const writer = new Writer()
      writeFlowMessage(writer, { message: 'get', family, flags: NLM_F_DUMP }, {})
      await client.dumpInPieces('list connections', writer.written(), (message) => {
        const event = decodeEvent(message)
        if (event !== undefined && !hasEnded(event)) onEvent({ ...event, kind: 'begun' })
      })
    }
  } finally {
    socket.close()
  }
}

function hasEnded({ tcpState }: EndEvent): boolean {
  return tcpState === uapi.TCP_CONNTRACK_TIME_WAIT || tcpState === uapi.TCP_CONNTRACK_CLOSE
}

const KINDS = { begun: 'begun', changed: 'closing', ended: 'gone' } as const

/** Undefined: it has no addresses. */
function decodeEvent(message: Message): EndEvent | undefined {
  const { view, start } = message
  const attributes = decodeNetfilterMessage(eventAttributes, message)
  if (attributes?.original === undefined || attributes.reply === undefined) return undefined
  const original = tupleFromAttributes(attributes.original)
  const reply = tupleFromAttributes(attributes.reply)
  if (original === undefined || reply === undefined) return undefined
  const { id = 0, status = 0, info, times } = attributes
  return {
    kind: KINDS[kindOf(message)],
    family: view.getUint8(start) === AF[6] ? 6 : 4,
    protocol: original.protocol,
    original: tupleFromBytes(original),
    reply: tupleFromBytes(reply),
    id,
    isAnswered: (status & uapi.IPS_SEEN_REPLY) !== 0,
    tcpState: info?.tcp?.state,
    counts: countsFrom(attributes),
    startMs: milliseconds(times?.start),
    stopMs: milliseconds(times?.stop),
  }
}

/** The kernel says 0 for what it does not know. */
function milliseconds(nanoseconds: bigint | undefined): number | undefined {
  return nanoseconds ? Number(nanoseconds / 1000n) / 1000 : undefined
}
