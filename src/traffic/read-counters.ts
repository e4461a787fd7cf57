// The table that counts, read so that other work has its turns: each list is received in one, for it has to be of one moment as far
// as the kernel lets it, and decoded in many.

import { formatIp, type Bytes, asBytes } from '../lib/ip.ts'
import { inPieces } from '../lib/in-pieces.ts'
import { nextTurn } from '../lib/next-turn.ts'
import type { TrafficCounts } from './traffic-counts.ts'
import { CounterSet } from './counter-set.ts'
import { type CountingTable, splitPair } from './counting-table.ts'
import type { NftablesDriver } from '../nftables/driver.ts'
import { PROTOCOL_NUMBERS, type TransportProtocol, decodePort } from '../nftables/fields.ts'
import type { NftSet } from '../nftables/types.ts'

/** What the kernel has counted between a frontend and one of its backends, since it began to. */
export interface CountedPair extends TrafficCounts {
  /** The same in every reading. */
  readonly id: string
  readonly protocol: TransportProtocol
  readonly frontend: { readonly address: string; readonly port: number }
  readonly backend: { readonly address: string; readonly port: number }
  /** A socket has chosen the backend: packets and bytes are not counted. */
  readonly isChosen?: true
}

/** What came to a frontend and was refused. */
export interface CountedRefusal {
  readonly protocol: TransportProtocol
  /** Undefined for a node port. */
  readonly address: string | undefined
  readonly port: number
  readonly packets: number
}

export interface CountedTable {
  readonly pairs: readonly CountedPair[]
  readonly refusals: readonly CountedRefusal[]
  /** Of all pairs, also of those for which there was no room. */
  readonly total: TrafficCounts
}

/** Pairs that are put together before other work gets a turn. */
const PIECE = 1024

const PROTOCOLS: ReadonlyMap<number, TransportProtocol> = new Map(
  (Object.keys(PROTOCOL_NUMBERS) as TransportProtocol[]).map((name) => [PROTOCOL_NUMBERS[name], name]),
)

type PairName = Pick<CountedPair, 'id' | 'protocol' | 'frontend' | 'backend'>

export class CounterReader {
  readonly #table: CountingTable
  readonly #driver: NftablesDriver
  readonly #sets: Readonly<Record<'sent' | 'received' | 'begun' | 'refused' | 'refusedPorts', CounterSet>>
  /** What the keys of pairs say. */
  #names = new Map<Bytes, PairName>()
  #isClosed = false

  /** The driver is that of the table, and stays the caller's. */
  constructor(driver: NftablesDriver, table: CountingTable) {
    this.#table = table
    this.#driver = driver
    const setFor = ({ timeoutMs }: NftSet) => new CounterSet(timeoutMs ?? Infinity)
    const { sent, received, begun, refused, refusedPorts } = table
    this.#sets = {
      sent: setFor(sent),
      received: setFor(received),
      begun: setFor(begun),
      refused: setFor(refused),
      refusedPorts: setFor(refusedPorts),
    }
  }

  /** One at a time. */
  async read(nowMs: number): Promise<CountedTable> {
    for (const name of ['sent', 'received', 'begun', 'refused', 'refusedPorts'] as const) {
      this.#mustBeOpen()
      const parts = this.#driver.readCounters(this.#table[name])
      await nextTurn()
      await this.#sets[name].follow(parts, nowMs)
    }
    const total = this.#readTotal()
    return { pairs: await this.#pairs(), refusals: this.#refusals(), total }
  }

  /** A reading that is under way fails. */
  close(): void {
    this.#isClosed = true
  }

  #mustBeOpen(): void {
    if (this.#isClosed) throw new Error('counting has ended')
  }

  #readTotal(): TrafficCounts {
    this.#mustBeOpen()
    const rules = this.#driver.readOutline()?.chains.get('count')?.rules ?? []
    const amounts = rules.flatMap(({ expressions }) =>
      expressions.flatMap((each) => (each.kind === 'counter' ? [each] : [])),
    )
    const [sent, received, begun] = amounts
    return {
      begun: Number(begun?.packets ?? 0),
      sentPackets: Number(sent?.packets ?? 0),
      sentBytes: Number(sent?.bytes ?? 0),
      receivedPackets: Number(received?.packets ?? 0),
      receivedBytes: Number(received?.bytes ?? 0),
    }
  }

  async #pairs(): Promise<CountedPair[]> {
    const { sent, received, begun } = this.#sets
    const names = new Map<Bytes, PairName>()
    const pairs: CountedPair[] = []
    const add = (key: Bytes) => {
      if (names.has(key)) return
      const name = this.#names.get(key) ?? nameOf(this.#table.sent, key)
      if (name === undefined) return
      names.set(key, name)
      const [out, back] = [sent.counts.get(key), received.counts.get(key)]
      pairs.push({
        id: name.id,
        protocol: name.protocol,
        frontend: name.frontend,
        backend: name.backend,
        begun: begun.counts.get(key)?.packets ?? 0,
        sentPackets: out?.packets ?? 0,
        sentBytes: out?.bytes ?? 0,
        receivedPackets: back?.packets ?? 0,
        receivedBytes: back?.bytes ?? 0,
      })
    }
    // Most are in all of them.
    for (const { counts } of [sent, received, begun]) await inPieces(counts.keys(), PIECE, add)
    this.#names = names
    return pairs
  }

  #refusals(): CountedRefusal[] {
    const { refused, refusedPorts } = this.#table
    return ([refused, refusedPorts] as const).flatMap((set, i) => {
      const { counts } = [this.#sets.refused, this.#sets.refusedPorts][i]!
      return [...counts].flatMap(([key, { packets }]) => refusalOf(set, key, packets) ?? [])
    })
  }
}

function nameOf(set: NftSet, key: Bytes): PairName | undefined {
  const [dialled = '', port = '', number = '', answers = '', answersPort = ''] = splitPair(set, key)
  const protocol = PROTOCOLS.get(number.charCodeAt(0))
  if (protocol === undefined) return undefined
  return {
    id: key,
    protocol,
    frontend: { address: formatIp(asBytes(dialled)), port: decodePort(port) },
    backend: { address: formatIp(asBytes(answers)), port: decodePort(answersPort) },
  }
}

function refusalOf(set: NftSet, key: Bytes, packets: number): CountedRefusal | undefined {
  const fields = splitPair(set, key)
  const [number = '', port = ''] = fields.slice(-2)
  const protocol = PROTOCOLS.get(number.charCodeAt(0))
  if (protocol === undefined) return undefined
  return { protocol, address: fields.length === 3 ? formatIp(fields[0]!) : undefined, port: decodePort(port), packets }
}
