// The nftables mode on this machine.

import { nftablesPlanner } from './plan/planner.ts'
import { removeLeftovers } from './remove-leftovers.ts'
import { lookForNftables, readPresentTables } from './look.ts'
import { readNftables } from './walkable.ts'
import { rehearseNftables } from './rehearse.ts'
import type { ModeOnMachine, ModeOptions, RunningMode } from '../contract.ts'
import type { Programmer } from '../programmer.ts'
import { trafficCounters } from '../traffic.ts'
import { InOrder } from '../../lib/in-order.ts'
import { OneAtATime } from '../shared/one-at-a-time.ts'
import { TableProgrammer } from '../shared/table-programmer.ts'
import { deleteTables, openWatchedTables } from '../../nftables/watched-tables.ts'

export const nftablesMachine: ModeOnMachine = {
  look: lookForNftables,
  readPresent: readPresentTables,
  readWalkable: readNftables,
  rehearse: rehearseNftables,
  open: openNftables,
  cleanup: (log) => deleteTables(nftablesPlanner.table, log),
  cleanupLeftovers: removeLeftovers,
}

function openNftables({ families, clock, onForeignChange }: ModeOptions): RunningMode {
  const tables = openWatchedTables({ table: nftablesPlanner.table, families, onForeignChange })
  return {
    programmer(family, { metrics, affinity }) {
      const ipFamily = `IPv${family}`
      const counts = {
        syncFailed: () => metrics.nftablesSyncFailures.with(ipFamily).inc(),
        cleanupFailed: () => metrics.nftablesCleanupFailures.with(ipFamily).inc(),
      }
      const order = new InOrder()
      const onFailed = (error: unknown, againInMs: number) => {
        counts.cleanupFailed()
        affinity.onFailed(error, againInMs)
      }
      const programmer = new TableProgrammer({
        planner: nftablesPlanner,
        driver: tables.driver(family),
        clock,
        counts,
        later: { order, onFailed, onMended: () => affinity.onMended() },
      })
      return new OneAtATime(inTurns(programmer), order)
    },
    traffic: trafficCounters(families),
    close: () => tables.close(),
  }
}

/** Its table may be very long: a comparison must not keep others waiting. */
function inTurns(programmer: TableProgrammer): Programmer {
  return {
    sync: (node, changes) => programmer.sync(node, changes),
    syncAll: (node, views) => programmer.syncAllInTurns(node, views),
    finish: () => programmer.finish(),
    tellCommands: (isTold) => programmer.tellCommands(isTold),
    close: () => programmer.close(),
  }
}
