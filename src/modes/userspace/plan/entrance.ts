// Where a client enters the proxy decides what becomes of it: which backends it may get, and whose address they see.

import type { Backend, Frontend, Route, ServicePortView } from '../../../model/types.ts'

/** Which of a service port's two lists of backends. */
export type List = 'Cluster' | 'Local'

/** Whose address backends see. */
export type SeenAs = 'client' | 'node'

export interface Entrance {
  readonly list: List
  readonly seenAs: SeenAs
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

export interface ServedList {
  readonly backends: readonly Backend[]
  readonly seenAs: ReadonlySet<SeenAs>
}

/** The lists of a service port that its frontends use, and the entrances that each needs. */
export function listsOf({ frontends, protocol }: ServicePortView): ReadonlyMap<List, ServedList> {
  const lists = new Map<List, { backends: readonly Backend[]; seenAs: Set<SeenAs> }>()
  // Its streams and message boundaries would not survive.
  if (protocol === 'SCTP') return lists
  for (const frontend of frontends) {
    for (const source of SOURCES) {
      const { verdict }: Route = frontend[ROUTES[source]]
      const entrance = entranceFor(frontend, source)
      if (entrance === undefined || verdict.kind !== 'to') continue
      const list = lists.get(entrance.list)
      if (list === undefined)
        lists.set(entrance.list, { backends: verdict.backends, seenAs: new Set([entrance.seenAs]) })
      else list.seenAs.add(entrance.seenAs)
    }
  }
  return lists
}
