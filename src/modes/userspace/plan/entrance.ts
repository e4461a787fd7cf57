// Where a client enters the proxy decides what becomes of it: which backends it may get, and whose address they see.

import type { BackendList } from '../../../model/backend-list.ts'
import type { Frontend, Policy, Route, ServicePortView } from '../../../model/types.ts'
import type { SeenAs } from '../../../data-path/seen-as.ts'

export interface Entrance {
  readonly list: Policy
  readonly seenAs: SeenAs
}

/** As a key. */
export type EntranceId = `${Policy} ${SeenAs}`

export function entranceId({ list, seenAs }: Entrance): EntranceId {
  return `${list} ${seenAs}`
}

/** The kinds of clients that the rules tell apart. */
export const SOURCES = ['pods', 'node', 'others'] as const
export type Source = (typeof SOURCES)[number]

const ROUTES = { pods: 'fromPods', node: 'fromNode', others: 'fromOthers' } as const satisfies Record<
  Source,
  keyof Frontend
>

/** Where clients of a source enter for a frontend; undefined when they are refused. */
export function entranceFor(frontend: Frontend, source: Source): Entrance | undefined {
  const { verdict, masquerade }: Route = frontend[ROUTES[source]]
  if (verdict.kind !== 'to') return undefined
  // The node's own connections have its address anyway.
  return { list: verdict.policy, seenAs: masquerade || source === 'node' ? 'node' : 'client' }
}

/** The entrances of a service port, each once, in the order of its frontends. */
export function entrancesOf({ frontends }: Pick<ServicePortView, 'frontends'>): Iterable<Entrance> {
  const entrances = new Map<EntranceId, Entrance>()
  for (const frontend of frontends) {
    for (const source of SOURCES) {
      const entrance = entranceFor(frontend, source)
      if (entrance !== undefined) entrances.set(entranceId(entrance), entrance)
    }
  }
  return entrances.values()
}

export interface ServedList {
  readonly backends: BackendList
  readonly seenAs: ReadonlySet<SeenAs>
}

/** The lists of a service port, and the entrances that each needs. */
export function listsOf({ frontends, protocol, lists }: ServicePortView): ReadonlyMap<Policy, ServedList> {
  const served = new Map<Policy, { backends: BackendList; seenAs: Set<SeenAs> }>()
  // Its streams and message boundaries would not survive.
  if (protocol === 'SCTP') return served
  for (const frontend of frontends) {
    for (const source of SOURCES) {
      const entrance = entranceFor(frontend, source)
      if (entrance === undefined) continue
      const { list, seenAs } = entrance
      const known = served.get(list)
      if (known === undefined) served.set(list, { backends: lists[list]!, seenAs: new Set([seenAs]) })
      else known.seenAs.add(seenAs)
    }
  }
  return served
}
