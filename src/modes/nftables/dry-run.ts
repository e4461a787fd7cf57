// What the nftables mode would program.

import type { DryRun, DryRunOptions } from '../dry-run.ts'
import { scriptForTable } from '../script-for-table.ts'
import { nftablesPlanner } from './plan/planner.ts'

export async function dryRunNftables(options: DryRunOptions): Promise<DryRun> {
  return { scripts: [await scriptForTable(nftablesPlanner, options)], remarks: [] }
}
