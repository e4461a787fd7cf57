// The face of the userspace mode.

import type { TablePlanner } from '../../../table-sync/table-planner.ts'
import { planBase } from './base.ts'
import { TABLE } from './names.ts'
import { planFragment, type ServedPort } from './service.ts'

export const USERSPACE_TABLE = TABLE

export const userspacePlanner: TablePlanner<ServedPort> = { table: TABLE, base: planBase, service: planFragment }
