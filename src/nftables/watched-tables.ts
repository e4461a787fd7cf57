// The nftables tables of a mode, one per family, watched for changes by other programs.

import { NftablesDriver } from './driver.ts'
import { type NftablesChange, type NftablesWatch, watchNftables } from './watch.ts'
import type { Family } from '../lib/ip.ts'
import type { Logger } from '../lib/log.ts'
import { nftFamily } from './language.ts'
import type { Op } from './types.ts'
import type { OnApplied, TableDriver } from './table-driver.ts'

export interface WatchedTablesOptions {
  readonly table: string
  readonly families: readonly Family[]
  /** Called when another program changes the table of a family. */
  readonly onForeignChange: (family: Family) => void
}

export interface WatchedTables {
  driver(family: Family): TableDriver
  /** Ends the watch. The drivers are closed by their users. */
  close(): void
}

/** From this many elements on, a transaction is faster when the kernel has no listener to notify. */
const LARGE = 1000

export function openWatchedTables({ table, families, onForeignChange }: WatchedTablesOptions): WatchedTables {
  const drivers = new Map(families.map((family) => [family, openDriver(family, table)]))
  const onChange = (change: NftablesChange) => {
    for (const [family, driver] of drivers) {
      const ours = change.kind === 'lost' || (change.family === driver.family && change.table === driver.table)
      if (ours) onForeignChange(family)
    }
  }
  const watch = watchNftables(onChange, { ignore: [...drivers.values()] })
  return {
    driver(family) {
      const driver = drivers.get(family)!
      return {
        apply: (ops) => apply(driver, watch, ops),
        applyEach: (transactions, onApplied) => applyEach(driver, watch, { transactions, onApplied }),
        read: () => driver.read(),
        readElements: (set) => driver.readElements(set),
        readingElements: (set) => driver.readingElements(set),
        get destroys() {
          return driver.destroys
        },
        parts: driver.parts,
        close: () => driver.close(),
      }
    },
    close: () => watch.close(),
  }
}

function apply(driver: NftablesDriver, watch: NftablesWatch, ops: readonly Op[]): { readonly bytes: number } {
  return isLarge(ops) ? watch.quietly(() => driver.apply(ops)) : driver.apply(ops)
}

/** So many large transactions do not pay for a thread, nor for not listening in between. */
const FEW = 50

function applyEach(
  driver: NftablesDriver,
  watch: NftablesWatch,
  { transactions, onApplied }: { transactions: Iterable<readonly Op[]>; onApplied: OnApplied },
): void {
  const all = transactions[Symbol.iterator]()
  for (let large = 0; large < FEW;) {
    const { done, value: ops } = all.next()
    if (done === true) return
    onApplied(ops, apply(driver, watch, ops).bytes)
    if (isLarge(ops)) large++
  }
  const rest = { [Symbol.iterator]: () => all }
  watch.quietly(() => driver.applyEach(rest, onApplied))
}

/** Deletes the tables of this name, of both families; harmless when there are none. */
export function deleteTables(table: string, log: Logger): void {
  for (const family of [4, 6] as const) {
    using driver = openDriver(family, table)
    if (!driver.exists()) continue
    driver.apply([{ op: 'deleteTable' }])
    log.info('Removed nftables table', { table: `${driver.family} ${driver.table}` })
  }
}

function openDriver(family: Family, table: string): NftablesDriver {
  return new NftablesDriver({ family: nftFamily(family), table })
}

function isLarge(ops: readonly Op[]): boolean {
  let elements = 0
  for (const op of ops) if ('elements' in op) elements += op.elements.length
  return elements >= LARGE
}
