// The nftables mode on this machine.

import { nftablesPlanner } from './plan/planner.ts'
import type { Mode, RunningMode, ModeOptions } from '../contract.ts'
import { TableProgrammer } from '../shared/table-programmer.ts'
import { deleteTables, openWatchedTables } from '../../nftables/watched-tables.ts'

export const nftablesMode: Mode = {
  name: 'nftables',
  changesAreCheap: true,
  open: openNftables,
  cleanup: (log) => deleteTables(nftablesPlanner.table, log),
}

function openNftables({ families, clock, onForeignChange }: ModeOptions): RunningMode {
  const tables = openWatchedTables({ table: nftablesPlanner.table, families, onForeignChange })
  return {
    programmer: (family) => new TableProgrammer({ planner: nftablesPlanner, driver: tables.driver(family), clock }),
    close: () => tables.close(),
  }
}
