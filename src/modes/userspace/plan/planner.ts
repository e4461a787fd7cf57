// The face of the userspace mode.

import type { TablePlanner } from '../../../table-sync/table-planner.ts'
import { planBase } from './base.ts'
import { TABLE } from './names.ts'
import { type Doors, planFragment } from './service.ts'

export const USERSPACE_TABLE = TABLE

/** The plan depends on where the proxy's doors are, which only it knows. */
export function userspacePlanner(doors: Doors): TablePlanner {
  return { table: TABLE, base: planBase, service: (node, view) => planFragment(node, view, doors) }
}
