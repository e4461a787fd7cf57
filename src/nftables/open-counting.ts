// Counting, switched on and off.

import { type Bytes, type Family, formatIp } from '../lib/ip.ts'
import { KernelError } from '../lib/errors.ts'
import { COUNTING_TABLE, opsToCount, planCountingTable, splitPair, type CountingTable } from './counting-table.ts'
import { NftablesDriver } from './driver.ts'
import type { CountedElement } from './bytes/counted-element.ts'
import { nftFamily } from './language.ts'
import { PROTOCOL_NUMBERS, type TransportProtocol } from './fields.ts'
import type { Element, NftSet, Op } from './types.ts'

export interface Amount {
  readonly packets: number
  readonly bytes: number
}

/** What the kernel has counted between a frontend and one of its backends, since it began to. */
export interface CountedPair {
  readonly protocol: TransportProtocol
  readonly frontend: { readonly address: string; readonly port: number }
  readonly backend: { readonly address: string; readonly port: number }
  /** Packets that begin a connection: one that is sent again counts again. */
  readonly begun: number
  readonly sent: Amount
  readonly received: Amount
}

/** What came to a frontend and was refused. */
export interface CountedRefusal {
  readonly protocol: TransportProtocol
  /** Undefined for a node port. */
  readonly address: string | undefined
  readonly port: number
  readonly packets: number
}

export interface Counted {
  readonly pairs: readonly CountedPair[]
  readonly refusals: readonly CountedRefusal[]
  /** Of all pairs, also of those for which there was no room. */
  readonly total: {
    readonly begun: number
    readonly sent: Amount
    readonly received: Amount
  }
}

/** Which clients are refused where. */
export interface Closed {
  /** Frontends that refuse all of them, or some: `address . protocol . port`, `protocol . port`. */
  readonly frontends: ReadonlySet<string>
  readonly ports: ReadonlySet<string>
  /** Frontends that are for some sources only, with the ranges of these. */
  readonly guarded: ReadonlyMap<string, readonly SourceRange[]>
}

export interface SourceRange {
  readonly first: Bytes
  readonly last: Bytes
}

const OPEN: Closed = { frontends: new Set(), ports: new Set(), guarded: new Map() }

const NOTHING: Amount = { packets: 0, bytes: 0 }
const PROTOCOLS: ReadonlyMap<number, TransportProtocol> = new Map(
  (Object.keys(PROTOCOL_NUMBERS) as TransportProtocol[]).map((name) => [PROTOCOL_NUMBERS[name], name]),
)

/** The kernel counts while this is open. */
export class Counting {
  readonly #driver: NftablesDriver
  readonly #table: CountingTable
  #closed: Closed = OPEN

  constructor(family: Family, size: number) {
    this.#table = planCountingTable(family, size)
    this.#driver = new NftablesDriver({
      family: nftFamily(family),
      table: COUNTING_TABLE,
    })
    try {
      this.#driver.apply(opsToCount(this.#table))
    } catch (error) {
      this.#driver.close()
      throw error
    }
  }

  /** Tells the kernel which frontends refuse. */
  follow(closed: Closed): void {
    const { closed: frontends, closedPorts, guarded, allowed } = this.#table
    const before = this.#closed
    const ops = [
      ...diffElements(frontends, keys(before.frontends), keys(closed.frontends)),
      ...diffElements(closedPorts, keys(before.ports), keys(closed.ports)),
      ...diffElements(allowed, ranges(before), ranges(closed)),
      ...diffElements(guarded, keys(before.guarded.keys()), keys(closed.guarded.keys())),
    ]
    if (ops.length > 0) this.#driver.apply(ops)
    this.#closed = closed
  }

  read(): Counted {
    const { sent, received, begun, refused, refusedPorts } = this.#table
    const pairs = new Map<string, { sent: Amount; received: Amount; begun: number }>()
    const pairAt = (key: string) => {
      let pair = pairs.get(key)
      if (pair === undefined) pairs.set(key, (pair = { sent: NOTHING, received: NOTHING, begun: 0 }))
      return pair
    }
    for (const { key, ...amount } of this.#driver.readCounters(sent)) pairAt(key).sent = amount
    for (const { key, ...amount } of this.#driver.readCounters(received)) pairAt(key).received = amount
    for (const { key, packets } of this.#driver.readCounters(begun)) pairAt(key).begun = packets
    return {
      pairs: [...pairs].flatMap(([key, counts]) => pairOf(sent, key, counts) ?? []),
      refusals: [
        ...this.#driver.readCounters(refused).flatMap((each) => refusalOf(refused, each) ?? []),
        ...this.#driver.readCounters(refusedPorts).flatMap((each) => refusalOf(refusedPorts, each) ?? []),
      ],
      total: this.#readTotal(),
    }
  }

  /** Counting ends. */
  close(): void {
    try {
      this.#driver.apply([{ op: 'deleteTable' }])
    } finally {
      this.#driver.close()
    }
  }

  #readTotal(): Counted['total'] {
    const rules = this.#driver.read()?.chains.get('count')?.rules ?? []
    const amounts = rules.flatMap(({ expressions }) =>
      expressions.flatMap((each) =>
        each.kind === 'counter' ? [{ packets: Number(each.packets), bytes: Number(each.bytes) }] : [],
      ),
    )
    const [sent = NOTHING, received = NOTHING, begun = NOTHING] = amounts
    return { sent, received, begun: begun.packets }
  }
}

/** Removes what a proxy that was killed left counting. */
export function endCounting(families: readonly Family[]): void {
  for (const family of families) {
    const driver = new NftablesDriver({
      family: nftFamily(family),
      table: COUNTING_TABLE,
    })
    try {
      if (driver.exists()) driver.apply([{ op: 'deleteTable' }])
    } catch (error) {
      if (!(error instanceof KernelError)) throw error
    } finally {
      driver.close()
    }
  }
}

type Elements = ReadonlyMap<string, Element>

function keys(all: Iterable<string>): Elements {
  return new Map(Array.from(all, (key) => [key, { key }]))
}

function ranges({ guarded }: Closed): Elements {
  const elements = [...guarded].flatMap(([key, sources]) =>
    sources.map(({ first, last }) => ({ key: key + first, keyEnd: key + last })),
  )
  return new Map(elements.map((element) => [element.key + element.keyEnd, element]))
}

function diffElements(set: NftSet, before: Elements, after: Elements): Op[] {
  const without = (some: Elements, others: Elements) =>
    [...some].flatMap(([name, element]) => (others.has(name) ? [] : [element]))
  const [added, deleted] = [without(after, before), without(before, after)]
  return [
    ...(deleted.length > 0 ? [{ op: 'deleteElements', set, elements: deleted } as const] : []),
    ...(added.length > 0 ? [{ op: 'addElements', set, elements: added } as const] : []),
  ]
}

function pairOf(
  set: NftSet,
  key: string,
  counts: Pick<CountedPair, 'sent' | 'received' | 'begun'>,
): CountedPair | undefined {
  const [dialled = '', port = '', number = '', answers = '', answersPort = ''] = splitPair(set, key)
  const protocol = PROTOCOLS.get(number.charCodeAt(0))
  if (protocol === undefined) return undefined
  return {
    protocol,
    frontend: { address: formatIp(dialled), port: portOf(port) },
    backend: { address: formatIp(answers), port: portOf(answersPort) },
    ...counts,
  }
}

function refusalOf(set: NftSet, { key, packets }: CountedElement): CountedRefusal | undefined {
  const fields = splitPair(set, key)
  const [number = '', port = ''] = fields.slice(-2)
  const protocol = PROTOCOLS.get(number.charCodeAt(0))
  if (protocol === undefined) return undefined
  return {
    protocol,
    address: fields.length === 3 ? formatIp(fields[0]!) : undefined,
    port: portOf(port),
    packets,
  }
}

function portOf(field: string): number {
  return (field.charCodeAt(0) << 8) | field.charCodeAt(1)
}
