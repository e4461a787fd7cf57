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
      this.arrange(list, this.#following(former, list))
    }
  }

  /** What is the same at both ends of the lists, which is most of a long one, need not be looked at. */
  #following(former: List, list: List): List {
    const shorter = Math.min(former.length, list.length)
    let start = 0
    while (start < shorter && former[start] === list[start]) start++
    let rest = 0
    while (rest < shorter - start && former.at(-1 - rest) === list.at(-1 - rest)) rest++
    const came = new Set(list.slice(start, list.length - rest))
    const went = new Set(former.slice(start, former.length - rest).filter((backend) => !came.delete(backend)))
    const placed: (Backend | undefined)[] = this.of(former).slice()
    const gaps: number[] = []
    if (went.size < FEW) for (const backend of went) gaps.push(placed.indexOf(backend))
    else for (const [place, backend] of placed.entries()) if (went.has(backend!)) gaps.push(place)
    return fillPlaces(placed, gaps, came)
  }

  arrange(list: List, placed: List): void {
    if (placed.every((backend, i) => backend === list[i])) this.#placed.delete(list)
    else this.#placed.set(list, placed)
  }
}

/** Looking for each of so many backends costs less than looking at all of a list. */
const FEW = 8

/** The backends of `wanted` in an order that leaves as many as possible where they are in `former`; undefined there: a free place. */
export function keepPlaces(wanted: List, former: readonly (Backend | undefined)[]): Backend[] {
  const came = new Set(wanted)
  const placed = former.slice()
  const gaps: number[] = []
  for (const [place, backend] of former.entries()) {
    if (backend === undefined || !came.delete(backend)) gaps.push(place)
  }
  return fillPlaces(placed, gaps, came)
}

/** Puts those that came into the gaps, and the last of the list where there are more gaps. `placed` becomes the answer. */
function fillPlaces(placed: (Backend | undefined)[], gaps: number[], came: Set<Backend>): Backend[] {
  // Those that are the same to the kernel, and differ in what it does not see, stay where they are.
  const byAddress = new Map(Array.from(came, (backend) => [idOf(backend), backend]))
  const free = gaps.filter((place) => {
    const former = placed[place]
    const same = former && byAddress.get(idOf(former))
    const stays = same !== undefined && came.delete(same)
    placed[place] = stays ? same : undefined
    return !stays
  })
  free.sort((a, b) => a - b)
  // What came takes the free places in turn, and then those behind the last.
  let taken = 0
  for (const backend of came) placed[free[taken++] ?? placed.length] = backend
  for (const place of free.slice(taken)) {
    while (placed.length > place && placed.at(-1) === undefined) placed.pop()
    if (place < placed.length) placed[place] = placed.pop()
  }
  return placed as Backend[]
}

function idOf({ ip, port }: Backend): string {
  return `${ip} ${port}`
}
