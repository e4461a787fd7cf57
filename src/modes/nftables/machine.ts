// The nftables mode on this machine.

import { closeAllNow } from '../../lib/close-all.ts'
import { nftablesPlanner } from './plan/planner.ts'
import { removeLeftovers } from './remove-leftovers.ts'
import { lookForNftables, readPresentTables } from './look.ts'
import { readNftables } from './walkable.ts'
import { dryRunNftables } from './dry-run.ts'
import type { ModeHost, ModeOptions, RunningMode } from '../contract.ts'
import { overLimitMetric } from '../over-limit.ts'
import { trafficCounters } from '../traffic.ts'
import { TableProgrammer } from '../../table-sync/table-programmer.ts'
import { probeLimits } from '../../nftables/probe-limits.ts'
import { deleteTables, openWatchedTables } from '../../nftables/watched-tables.ts'

export const nftablesMachine: ModeHost = {
  look: lookForNftables,
  readPresent: readPresentTables,
  readWalkable: readNftables,
  dryRun: dryRunNftables,
  open: openNftables,
  cleanup: (log) => deleteTables(nftablesPlanner.table, log),
  cleanupLeftovers: removeLeftovers,
}

async function openNftables(options: ModeOptions): Promise<RunningMode> {
  const { families, clock, onForeignChange, localhostNodePorts } = options
  const { LocalhostNodePorts } = localhostNodePorts === true ? await import('./localhost.ts') : {}
  const tables = openWatchedTables({ table: nftablesPlanner.table, families, onForeignChange })
  let canLimit: boolean | undefined
  const localhost = LocalhostNodePorts && new LocalhostNodePorts(options)
  return {
    programmer(family, reports) {
      const { metrics, affinity } = reports
      const ipFamily = `IPv${family}`
      const counts = {
        syncFailed: () => metrics.nftablesSyncFailures.with(ipFamily).inc(),
        cleanupFailed: () => metrics.nftablesCleanupFailures.with(ipFamily).inc(),
      }
      const onFailed = (error: unknown, againInMs: number) => {
        counts.cleanupFailed()
        affinity.onFailed(error, againInMs)
      }
      const programmer = new TableProgrammer({
        planner: nftablesPlanner,
        driver: tables.driver(family),
        clock,
        counts,
        affinity: { onFailed, onMended: () => affinity.onMended() },
      })
      return localhost?.following(programmer, family, reports) ?? programmer
    },
    traffic: trafficCounters(families, { table: nftablesPlanner.table }),
    canLimit: () => (canLimit ??= probeLimits()),
    overLimit: overLimitMetric(nftablesPlanner.table, families),
    ...(localhost && { status: () => localhost.status() }),
    close: () =>
      closeAllNow(
        () => localhost?.close(),
        () => tables.close(),
      ),
  }
}
