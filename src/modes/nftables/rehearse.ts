// What the nftables mode would program.

import type { Rehearsal, RehearseOptions } from '../rehearsal.ts'
import { rehearseTable } from '../rehearse-table.ts'
import { nftablesPlanner } from './plan/planner.ts'

export function rehearseNftables(options: RehearseOptions): Rehearsal {
  return { scripts: [rehearseTable(nftablesPlanner, options)], remarks: [] }
}
