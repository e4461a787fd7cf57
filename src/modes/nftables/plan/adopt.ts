// A table that is there already has its backends at places, perhaps at others than a new table would: they stay there.

import { type Bytes, type Family, asBytes } from '../../../lib/ip.ts'
import { isHash } from '../../../model/balance.ts'
import type { BackendList } from '../../../model/backend-list.ts'
import type { ServicePortView } from '../../../model/types.ts'
import type { Fragment } from '../../../nftables/fragment.ts'
import { endpointData, frontendKey } from '../../../table-sync/plan/frontend.ts'
import { inOrder, keepPlaces, type Places } from '../../../table-sync/places.ts'
import type { FindElement } from '../../../table-sync/table-planner.ts'
import { listsOf, placeKey } from './service.ts'

/** True when there was something to adopt. */
export function adoptPlaces(
  find: FindElement,
  { family, port, fragment }: { readonly family: Family; readonly port: ServicePortView; readonly fragment: Fragment },
  places: Places,
): boolean {
  if (hasAll(find, fragment)) return false
  const seen = new Set<BackendList>()
  let adopted = false
  for (const frontend of port.frontends) {
    for (const { set, backends } of listsOf(family, frontend)) {
      // All frontends of a list have the same places.
      // What a hash chooses from is the same everywhere.
      if (seen.has(backends) || isHash(backends.balance)) continue
      seen.add(backends)
      const known = new Map(backends.allRecords().map((record, i) => [endpointData(backends, i), record]))
      const former: (Bytes | undefined)[] = []
      for (let place = 0, key = frontendKey(frontend); ; place++) {
        const element = find(set.name, placeKey(key, place))
        if (element === undefined) break
        former.push(known.get(element.data ?? asBytes('')))
      }
      if (former.length === 0) continue
      const before = places.of(backends)
      places.arrange(backends, keepPlaces(inOrder(backends), former))
      adopted ||= places.of(backends).records !== before.records
    }
  }
  return adopted
}

/** Whether the kernel has every backend where the fragment has it. */
function hasAll(find: FindElement, fragment: Fragment): boolean {
  return fragment.elements.every(({ set, elements }) =>
    elements.every(({ key, data }) => data === undefined || find(set.name, key)?.data === data),
  )
}
