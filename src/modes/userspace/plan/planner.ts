// The face of the userspace mode.

import type { NodeView, ServicePortView } from '../../../model/types.ts'
import type { Fragment, TableBase } from '../../../nftables/fragment.ts'
import { planBase } from './base.ts'
import { TABLE } from './names.ts'
import { type FindDoor, planService } from './service.ts'

export const USERSPACE_TABLE = TABLE

/** What TableProgrammer wants to be given. */
export interface UserspacePlanner {
  readonly table: string
  base(node: NodeView): TableBase
  service(node: NodeView, view: ServicePortView): Fragment
}

/** The plan depends on where the proxy's doors are, which only it knows. */
export function userspacePlanner(find: FindDoor): UserspacePlanner {
  return { table: TABLE, base: planBase, service: (node, view) => planService(node, view, find) }
}
