// Where each backend of a list stands in the kernel, where a list is a map from places to backends.
//
// If places followed the order of addresses, one endpoint that goes would move half of the others, for every frontend. So those
// that stay keep their places: what comes takes the places that are free, and into those that are left the last ones move.

import type { Backend, ServicePortView } from '../../../model/types.ts'

type List = readonly Backend[]

/**
 * The places of all lists. A list that is not known here is in order of addresses. Lists are told apart as objects: while
 * nothing changes in one, views have the same object, and for a new object it is a new one.
 */
export class Places {
  readonly #placed = new WeakMap<List, List>()

  /** The backends of a list by their places. */
  of(list: List): List {
    return this.#placed.get(list) ?? list
  }

  /** Finds places for the lists of a service port that changed. Those of the view before are not touched: the kernel has them. */
  keep(before: ServicePortView, after: ServicePortView): void {
    const known = new Set(Object.values(before.lists))
    for (const policy of ['Cluster', 'Local'] as const) {
      const list = after.lists[policy]
      const former = before.lists[policy]
      if (list === undefined || former === undefined || known.has(list)) continue
      known.add(list)
      this.arrange(list, keepPlaces(list, this.of(former)))
    }
  }

  arrange(list: List, placed: List): void {
    if (placed.every((backend, i) => backend === list[i])) this.#placed.delete(list)
    else this.#placed.set(list, placed)
  }
}

/** The backends of `wanted` in an order that leaves as many as possible where they are in `former`; undefined there: a free place. */
export function keepPlaces(wanted: List, former: readonly (Backend | undefined)[]): Backend[] {
  const coming = new Set(wanted)
  const placed: (Backend | undefined)[] = former.map((backend) => {
    return backend !== undefined && coming.delete(backend) ? backend : undefined
  })
  // Of those that are the same to the kernel, and differ in what it does not see.
  const byAddress = new Map(Array.from(coming, (backend) => [idOf(backend), backend]))
  for (const [place, backend] of former.entries()) {
    if (placed[place] !== undefined || backend === undefined) continue
    const same = byAddress.get(idOf(backend))
    if (same === undefined || !coming.delete(same)) continue
    placed[place] = same
  }
  const rest = [...coming]
  for (let place = 0, next = 0; next < rest.length; place++) placed[place] ??= rest[next++]
  for (let place = 0; place < placed.length; place++) {
    while (placed.length > place && placed.at(-1) === undefined) placed.pop()
    if (place < placed.length && placed[place] === undefined) placed[place] = placed.pop()
  }
  return placed as Backend[]
}

function idOf({ ip, port }: Backend): string {
  return `${ip} ${port}`
}
