// The nftables mode on this machine: a driver per family, and an eye on who else touches our tables.

import { NftablesDriver } from '../kernel/nftables.ts'
import { type NftablesChange, watchNftables } from '../kernel/nftables-watch.ts'
import type { Family } from '../lib/ip.ts'
import { nftablesMode } from '../modes/nftables/mode.ts'
import { nftFamily } from '../state/nftables/language.ts'
import type { Op } from '../state/nftables/types.ts'
import type { Mode, OpenMode, OpenModeOptions } from './modes.ts'
import { NftablesProgrammer, type TableDriver } from './nftables-programmer.ts'

/** From this many elements on, a transaction is faster when nobody listens to it. */
const LARGE = 1000

export const nftablesOnThisMachine: Mode = {
  name: 'nftables',
  defaultNodePortAddresses: ['primary'],
  changesAreCheap: true,
  open: openNftables,
  cleanup(log) {
    for (const family of [4, 6] as const) {
      const driver = openDriver(family)
      try {
        if (!driver.exists()) continue
        driver.apply([{ op: 'deleteTable' }])
        log.info('Removed nftables table', { table: `${driver.family} ${driver.table}` })
      } finally {
        driver.close()
      }
    }
  },
}

function openNftables({ families, clock, onForeignChange }: OpenModeOptions): OpenMode {
  const drivers = new Map(families.map((family) => [family, openDriver(family)]))
  const onChange = (change: NftablesChange) => {
    for (const [family, driver] of drivers) {
      const ours = change.kind === 'lost' || (change.family === driver.family && change.table === driver.table)
      if (ours) onForeignChange(family)
    }
  }
  const watch = watchNftables(onChange, { ignore: [...drivers.values()] })
  return {
    programmer(family) {
      const driver = drivers.get(family)!
      const quiet: TableDriver = {
        apply: (ops) => (isLarge(ops) ? watch.quietly(() => driver.apply(ops)) : driver.apply(ops)),
        read: () => driver.read(),
        readElements: (set) => driver.readElements(set),
        close: () => driver.close(),
      }
      return new NftablesProgrammer({ planner: nftablesMode, driver: quiet, clock })
    },
    close: () => watch.close(),
  }
}

function openDriver(family: Family): NftablesDriver {
  return new NftablesDriver({ family: nftFamily(family), table: nftablesMode.table })
}

function isLarge(ops: readonly Op[]): boolean {
  let elements = 0
  for (const op of ops) if ('elements' in op) elements += op.elements.length
  return elements >= LARGE
}
