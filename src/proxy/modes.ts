// The modes that exist: how each is set up on this machine.

import { NftablesDriver, watchNftables } from '../kernel/nftables.ts'
import type { Clock } from '../lib/clock.ts'
import type { Family } from '../lib/ip.ts'
import type { Logger } from '../lib/log.ts'
import { nftablesMode } from '../modes/nftables/mode.ts'
import { nftFamily } from '../state/nftables/language.ts'
import { NftablesProgrammer } from './nftables-programmer.ts'
import type { Programmer } from './programmer.ts'

export interface Closeable {
  close(): void
}

export interface Mode {
  readonly name: string
  /** nodePortAddresses where the configuration has none. */
  readonly defaultNodePortAddresses: readonly string[]
  /** Whether a change costs so little that it need not wait for others. */
  readonly changesAreCheap: boolean
  createProgrammer(family: Family, clock: Clock): Programmer
  /** Removes all that the mode put into this machine; harmless when it never ran. */
  cleanup(log: Logger): void | Promise<void>
  /** Calls back when another program changes what this mode programs. */
  watch(onForeignChange: (family: Family) => void): Closeable
}

const nftables: Mode = {
  name: 'nftables',
  defaultNodePortAddresses: ['primary'],
  changesAreCheap: true,
  createProgrammer(family, clock) {
    const driver = new NftablesDriver({ family: nftFamily(family), table: nftablesMode.table })
    return new NftablesProgrammer({ planner: nftablesMode, driver, clock })
  },
  cleanup(log) {
    for (const family of [4, 6] as const) {
      const driver = new NftablesDriver({ family: nftFamily(family), table: nftablesMode.table })
      try {
        driver.apply([{ op: 'deleteTable' }])
        log.info('Removed nftables table', { table: `${nftFamily(family)} ${nftablesMode.table}` })
      } finally {
        driver.close()
      }
    }
  },
  watch(onForeignChange) {
    return watchNftables(({ family, table, pid }) => {
      if (table === nftablesMode.table && pid !== process.pid) onForeignChange(family === 'ip' ? 4 : 6)
    })
  },
}

export const allModes: readonly Mode[] = [nftables]

export function findMode(name: string): Mode {
  const mode = allModes.find((each) => each.name === name)
  if (mode !== undefined) return mode
  throw new Error(`Cannot run in mode ${name}: must be one of ${allModes.map((each) => each.name).join(', ')}`)
}
