// What the nftables mode would program.

import type { Rehearsal, RehearseOptions } from '../rehearsal.ts'
import { rehearseTable } from '../rehearse-table.ts'
import { nftablesPlanner } from './plan/planner.ts'

export async function rehearseNftables(options: RehearseOptions): Promise<Rehearsal> {
  return { scripts: [await rehearseTable(nftablesPlanner, options)], remarks: [] }
}
