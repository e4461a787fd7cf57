// The kernel's connection tracker: which flows there are, and removing some of them.

import { conntrackVocabulary } from './vocabulary.ts'
import { KernelError } from '../lib/errors.ts'
import { type Family, formatIp, splitHostPort, ipBytes } from '../lib/ip.ts'
import {
  answererFilter,
  countedAttributes,
  type FlowAttributes,
  flowAttributes,
  protocolFilter,
  type TupleBytes,
  tupleFromAttributes,
  tupleToAttributes,
  writeFlowMessage,
} from './messages.ts'
import { IPS_SEEN_REPLY } from './uapi.ts'
import type { Infer } from '../netlink/attributes.ts'
import type { Message } from '../netlink/message.ts'
import { NETLINK_NETFILTER, NLM_F_ACK, NLM_F_DUMP } from '../netlink/uapi/netlink.ts'
import type { Writer } from '../netlink/writer.ts'
import { errnoName } from '../system/libc.ts'
import { NetlinkConnection } from '../netlink/connection.ts'
import { decodeNetfilterMessage } from '../netlink/nfnetlink.ts'

const TCP = 6
const UDP = 17

/** So many at once that the kernel's answers fit in the socket's buffer, should all of them fail. */
const DELETE_AT_ONCE = 500

/** One direction of a flow. Addresses are canonical texts. */
export interface FlowTuple {
  readonly src: string
  readonly dst: string
  readonly sport: number
  readonly dport: number
}

/** An entry of the connection tracker. The client talks to `original.dst`; the answer comes from `reply.src`. */
export interface Flow {
  readonly family: Family
  /** The number of the transport protocol: 17 for UDP. */
  readonly protocol: number
  readonly original: FlowTuple
  readonly reply: FlowTuple
  /** Whether there was a packet in both directions. */
  readonly isAnswered: boolean
  /** 0 unless rules divide connections into zones. */
  readonly zone: number
  /** Tells this entry from most later ones of the same addresses and ports: it is made from where the entry is stored. */
  readonly id: number
}

/** Of both directions, with headers. */
export interface FlowCounts {
  readonly sentBytes: number
  readonly sentPackets: number
  readonly receivedBytes: number
  readonly receivedPackets: number
}

export interface FlowQuery {
  readonly family: Family
  readonly protocol: number
  /** The address is a canonical text. */
  readonly answerer?: { readonly ip: string; readonly port: number } | undefined
}

export class Conntrack implements Disposable {
  readonly #netlink = new NetlinkConnection(NETLINK_NETFILTER, {
    receiveBuffer: 4 << 20,
    vocabulary: conntrackVocabulary,
  })

  /**
   * The flows of a family and protocol that are wanted, of all or of those that one endpoint answers. A busy machine has
   * hundreds of thousands of flows: only those that are wanted are kept, and other work gets its turns meanwhile.
   */
  async find({ family, protocol, answerer }: FlowQuery, isWanted: (flow: Flow) => boolean): Promise<Flow[]> {
    const filter =
      answerer === undefined
        ? protocolFilter(protocol)
        : answererFilter({ src: ipBytes(answerer.ip), sport: answerer.port, protocol })
    const write = (writer: Writer) => writeFlowMessage(writer, { message: 'get', family, flags: NLM_F_DUMP }, filter)
    const found: Flow[] = []
    // Kernels before 5.8 know no filter.
    const isAsked = (flow: Flow) =>
      flow.protocol === protocol &&
      (answerer === undefined || (flow.reply.src === answerer.ip && flow.reply.sport === answerer.port))
    await this.#netlink.dumpInPieces('list connections', write, (message) => {
      const flow = decodeFlow(message)
      if (flow !== undefined && isAsked(flow) && isWanted(flow)) found.push(flow)
    })
    return found
  }

  /** The flow that has this tuple in this direction; undefined when there is none. Addresses are canonical texts. */
  lookUp(
    family: Family,
    protocol: number,
    side: { readonly original: FlowTuple } | { readonly reply: FlowTuple },
  ): Flow | undefined {
    const toAttributes = ({ src, dst, sport, dport }: FlowTuple) =>
      tupleToAttributes({ src: ipBytes(src), dst: ipBytes(dst), sport, dport, protocol })
    const wanted = 'original' in side ? { original: toAttributes(side.original) } : { reply: toAttributes(side.reply) }
    return this.#lookUp(family, wanted, decodeFlow)
  }

  /** What was counted of a flow; undefined when it is gone, or nothing counts. Addresses are canonical texts. */
  counts(family: Family, protocol: number, { src, dst, sport, dport }: FlowTuple): FlowCounts | undefined {
    const original = tupleToAttributes({ src: ipBytes(src), dst: ipBytes(dst), sport, dport, protocol })
    return this.#lookUp(family, { original }, (message) =>
      countsFrom(decodeNetfilterMessage(countedAttributes, message) ?? {}),
    )
  }

  /** Deletes flows, and returns how many there were: one that ended meanwhile is no error. */
  delete(flows: readonly Flow[]): number {
    let deleted = 0
    for (let first = 0; first < flows.length; first += DELETE_AT_ONCE) {
      deleted += this.#deleteSome(flows.slice(first, first + DELETE_AT_ONCE))
    }
    return deleted
  }

  close(): void {
    this.#netlink.close()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  #lookUp<T>(family: Family, wanted: FlowAttributes, decode: (message: Message) => T | undefined): T | undefined {
    const write = (writer: Writer) => writeFlowMessage(writer, { message: 'get', family, flags: 0 }, wanted)
    try {
      return this.#netlink.get('look up a connection', write, decode)
    } catch (error) {
      if (error instanceof KernelError && error.errno === 'ENOENT') return undefined
      throw error
    }
  }

  #deleteSome(flows: readonly Flow[]): number {
    let missing = 0
    const { answers } = this.#netlink.batch((writer) => {
      for (const [i, flow] of flows.entries()) {
        const isLast = i === flows.length - 1
        const original = tupleToAttributes(tupleToBytes(flow))
        writeFlowMessage(
          writer,
          { message: 'delete', family: flow.family, flags: isLast ? NLM_F_ACK : 0 },
          // A kernel without zones (CONFIG_NF_CONNTRACK_ZONES) refuses one, zone 0 too.
          { original, id: flow.id, ...(flow.zone === 0 ? {} : { zone: flow.zone }) },
        )
      }
    })
    for (const { sequence, errno, extack } of answers) {
      if (errno === 0) continue
      if (errnoName(errno) !== 'ENOENT')
        throw new KernelError(`delete ${describe(flows[sequence])}`, errnoName(errno), extack)
      missing++
    }
    // The last one is answered in any case.
    if (answers.at(-1)?.sequence !== flows.length - 1) throw new KernelError('delete connections', 'ENOMSG')
    return flows.length - missing
  }
}

/** For callers that look now and then: the socket is opened for each call. */
export const conntrackFlows = {
  findTcp: finderOf(TCP),
  findUdp: finderOf(UDP),
  delete(flows: readonly Flow[]): number {
    using conntrack = new Conntrack()
    return conntrack.delete(flows)
  },
} as const

/** Those that are wanted; only of those that are answered by one endpoint (`ip:port`), if it is given. */
function finderOf(protocol: number) {
  return async (family: Family, isWanted: (flow: Flow) => boolean, answerer?: string): Promise<Flow[]> => {
    const query = { family, protocol, answerer: answerer === undefined ? undefined : splitHostPort(answerer) }
    using conntrack = new Conntrack()
    return await conntrack.find(query, isWanted)
  }
}

export function decodeFlow(message: Message): Flow | undefined {
  const attributes = decodeNetfilterMessage(flowAttributes, message)
  if (attributes?.original === undefined || attributes.reply === undefined) return undefined
  const original = tupleFromAttributes(attributes.original)
  const reply = tupleFromAttributes(attributes.reply)
  if (original === undefined || reply === undefined) return undefined
  return {
    family: original.src.length === 4 ? 4 : 6,
    protocol: original.protocol,
    original: tupleFromBytes(original),
    reply: tupleFromBytes(reply),
    isAnswered: ((attributes.status ?? 0) & IPS_SEEN_REPLY) !== 0,
    zone: attributes.zone ?? 0,
    id: attributes.id ?? 0,
  }
}

export function countsFrom({ sent, received }: Infer<typeof countedAttributes>): FlowCounts | undefined {
  if (sent?.bytes === undefined) return undefined
  return {
    sentBytes: sent.bytes,
    sentPackets: sent.packets ?? 0,
    receivedBytes: received?.bytes ?? 0,
    receivedPackets: received?.packets ?? 0,
  }
}

export function tupleFromBytes({ src, dst, sport, dport }: TupleBytes): FlowTuple {
  return { src: formatIp(src), dst: formatIp(dst), sport, dport }
}

function tupleToBytes({ original: { src, dst, sport, dport }, protocol }: Flow): TupleBytes {
  return { src: ipBytes(src), dst: ipBytes(dst), sport, dport, protocol }
}

function describe(flow: Flow | undefined): string {
  if (flow === undefined) return 'a connection'
  const { src, dst, sport, dport } = flow.original
  return `connection ${src} port ${sport} to ${dst} port ${dport}`
}
