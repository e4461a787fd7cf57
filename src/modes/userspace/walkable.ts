// What the userspace mode has in the kernel, for explain: rules that lead to a listener of the proxy. What is behind it is
// the proxy's own business.

import type { Walkable } from '../../packet-walk/types.ts'
import { nftFamily } from '../../nftables/language.ts'
import { readWalkableTable } from '../../nftables/read-walkable.ts'
import type { WalkableOptions } from '../contract.ts'
import { USERSPACE_TABLE } from './plan/planner.ts'

export function readUserspace({ family, now }: WalkableOptions): Walkable | undefined {
  const walkable = readWalkableTable({ family: nftFamily(family), table: USERSPACE_TABLE }, now())
  return walkable && { ...walkable, endsAt: 'the proxy' }
}
