// What the nftables mode has in the kernel, for explain.

import type { Walkable } from '../../lib/packet-walk.ts'
import { nftFamily } from '../../nftables/language.ts'
import { readWalkableTable } from '../../nftables/read-walkable.ts'
import type { WalkableOptions } from '../contract.ts'
import { nftablesPlanner } from './plan/planner.ts'

export function readNftables({ family, now }: WalkableOptions): Walkable | undefined {
  return readWalkableTable({ family: nftFamily(family), table: nftablesPlanner.table }, now())
}
