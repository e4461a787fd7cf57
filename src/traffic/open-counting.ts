// Counting, switched on and off.

import { type Bytes, type Family, asBytes } from '../lib/ip.ts'
import { KernelError } from '../lib/errors.ts'
import { COUNTING_TABLE, opsToCount, planCountingTable, type CountingTable } from './counting-table.ts'
import { NftablesDriver } from '../nftables/driver.ts'
import { nftFamily } from '../nftables/language.ts'
import { type CountedTable, CounterReader } from './read-counters.ts'
import type { Element, NftSet, Op } from '../nftables/types.ts'

/** Which clients are refused where. */
export interface Closed {
  /** Frontends that refuse all of them, or some: `address . protocol . port`, `protocol . port`. */
  readonly frontends: ReadonlySet<Bytes>
  readonly ports: ReadonlySet<Bytes>
  /** Frontends that are for some sources only, with the ranges of these. */
  readonly guarded: ReadonlyMap<Bytes, readonly SourceRange[]>
}

export interface SourceRange {
  readonly first: Bytes
  readonly last: Bytes
}

const OPEN: Closed = { frontends: new Set(), ports: new Set(), guarded: new Map() }

/** The kernel counts while this is open. */
export class Counting {
  readonly #driver: NftablesDriver
  readonly #table: CountingTable
  readonly #reader: CounterReader
  #closed: Closed = OPEN

  constructor(family: Family, size: number) {
    this.#table = planCountingTable(family, size)
    this.#driver = new NftablesDriver({
      family: nftFamily(family),
      table: COUNTING_TABLE,
    })
    this.#reader = new CounterReader(this.#driver, this.#table)
    try {
      this.#driver.apply(opsToCount(this.#table))
    } catch (error) {
      this.#driver.close()
      throw error
    }
  }

  /** Writes the frontends that refuse to the kernel. */
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

  /** Takes several turns of the event loop; is not to be called again before it is done. Rejects when it is closed meanwhile. */
  read(): Promise<CountedTable> {
    return this.#reader.read(performance.now())
  }

  /** Counting ends. */
  close(): void {
    this.#reader.close()
    try {
      this.#driver.apply([{ op: 'deleteTable' }])
    } finally {
      this.#driver.close()
    }
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

function keys(all: Iterable<Bytes>): Elements {
  return new Map(Array.from(all, (key) => [key, { key }]))
}

function ranges({ guarded }: Closed): Elements {
  const elements = [...guarded].flatMap(([key, sources]) =>
    sources.map(({ first, last }) => ({ key: asBytes(key + first), keyEnd: asBytes(key + last) })),
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
