// The nftables mode on this machine.

import { nftablesPlanner } from './plan/planner.ts'
import type { ModeOnMachine, ModeOptions, RunningMode } from '../contract.ts'
import { TableProgrammer } from '../shared/table-programmer.ts'
import { deleteTables, openWatchedTables } from '../../nftables/watched-tables.ts'

export const nftablesMachine: ModeOnMachine = {
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
