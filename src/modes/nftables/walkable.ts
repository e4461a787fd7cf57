// What the nftables mode has in the kernel, for explain.

import type { Walkable } from '../../packet-walk/types.ts'
import { MANY } from '../../nftables/table-reader.ts'
import { nftFamily } from '../../nftables/language.ts'
import { readWalkableTable } from '../../nftables/read-walkable.ts'
import type { Table } from '../../nftables/types.ts'
import type { WalkableOptions } from '../contract.ts'
import { countPlaces } from '../../table-sync/kernel-lists.ts'
import { LIST_MAPS, listLengths } from './plan/lists.ts'
import { nftablesPlanner } from './plan/planner.ts'

export function readNftables({ family, now }: WalkableOptions): Walkable | undefined {
  const perhaps = { sets: LIST_MAPS, areWanted: (rest: Table) => countPlaces(listLengths(rest)) <= MANY }
  return readWalkableTable({ family: nftFamily(family), table: nftablesPlanner.table, perhaps }, now())
}
