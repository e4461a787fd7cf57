// The nftables mode on this machine.

import { nftablesMode } from '../modes/nftables/mode.ts'
import type { Mode, OpenMode, OpenModeOptions } from './mode.ts'
import { NftablesProgrammer } from './nftables-programmer.ts'
import { deleteTables, openWatchedTables } from './watched-tables.ts'

export const nftablesOnThisMachine: Mode = {
  name: 'nftables',
  defaultNodePortAddresses: ['primary'],
  changesAreCheap: true,
  open: openNftables,
  cleanup: (log) => deleteTables(nftablesMode.table, log),
}

function openNftables({ families, clock, onForeignChange }: OpenModeOptions): OpenMode {
  const tables = openWatchedTables({ table: nftablesMode.table, families, onForeignChange })
  return {
    programmer: (family) => new NftablesProgrammer({ planner: nftablesMode, driver: tables.driver(family), clock }),
    close: () => tables.close(),
  }
}
