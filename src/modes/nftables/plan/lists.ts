// What a table says about its lists of backends without looking into them: they are by far the longest part of it.

import type { Bytes } from '../../../lib/ip.ts'
import type { Table } from '../../../nftables/types.ts'
import type { ListLengths } from '../../../table-sync/table-planner.ts'
import { BY_ADDRESS, BY_NODE_PORT } from './frontend.ts'
import { splitCountSetName } from '../../../table-sync/plan/place.ts'
import { SETS } from './names.ts'

/** By the set of the frontends that choose from it: the map of places. */
const MAPS: ReadonlyMap<string, string> = new Map(
  [BY_ADDRESS, BY_NODE_PORT].flatMap((sets) => [
    [SETS[sets.served], SETS[sets.endpoints]],
    [SETS[sets.servedLocally], SETS[sets.localEndpoints]],
  ]),
)

/** No list is longer: a set that says so is not of our making. */
const LONGEST = 999_999

export const LIST_MAPS: ReadonlySet<string> = new Set(MAPS.values())

/** Rules choose among as many places as the set says that a frontend is in. What a map may have beyond them is never looked up. */
export function listLengths(table: Table): ListLengths {
  const lengths = new Map(Array.from(LIST_MAPS, (map) => [map, new Map<Bytes, number>()]))
  for (const [name, elements] of table.elements) {
    const counted = splitCountSetName(name)
    const ofMap = counted && lengths.get(MAPS.get(counted.frontends) ?? '')
    if (counted === undefined || ofMap === undefined || counted.count > LONGEST) continue
    for (const { key } of elements.values()) ofMap.set(key, Math.max(ofMap.get(key) ?? 0, counted.count))
  }
  return lengths
}
