// A service port as it is sent: each list of backends once, not with every verdict that uses it.

import { BackendList } from '../../model/backend-list.ts'
import type { Backend, Frontend, Policy, Route, ServicePortView, Verdict } from '../../model/types.ts'

type SentVerdict = Exclude<Verdict, { kind: 'to' }> | Omit<Extract<Verdict, { kind: 'to' }>, 'backends'>
type SentRoute = Omit<Route, 'verdict'> & { readonly verdict: SentVerdict }
type Routes = 'fromPods' | 'fromNode' | 'fromOthers'

export type PortState = Omit<ServicePortView, 'frontends' | 'lists' | 'backends'> & {
  readonly lists: Readonly<Partial<Record<Policy, readonly Backend[]>>>
  readonly backends: readonly Backend[]
  readonly frontends: readonly (Omit<Frontend, Routes> & Readonly<Record<Routes, SentRoute>>)[]
}

export function describePort({ frontends, lists, backends, ...rest }: ServicePortView): PortState {
  return {
    ...rest,
    lists: mapLists(lists, (list) => [...list]),
    backends: [...backends],
    frontends: frontends.map((frontend) => ({
      ...frontend,
      fromPods: describeRoute(frontend.fromPods),
      fromNode: describeRoute(frontend.fromNode),
      fromOthers: describeRoute(frontend.fromOthers),
    })),
  }
}

/** The view that was sent. */
export function restorePort(port: PortState): ServicePortView {
  const lists = mapLists(port.lists, (list) => BackendList.of(list))
  const restore = ({ verdict, ...rest }: SentRoute): Route => ({
    ...rest,
    verdict: verdict.kind === 'to' ? { ...verdict, backends: lists[verdict.policy] ?? BackendList.none } : verdict,
  })
  return {
    ...port,
    lists,
    backends: BackendList.of(port.backends),
    frontends: port.frontends.map((frontend) => ({
      ...frontend,
      address: frontend.address,
      allowedSources: frontend.allowedSources,
      affinitySeconds: frontend.affinitySeconds,
      fromPods: restore(frontend.fromPods),
      fromNode: restore(frontend.fromNode),
      fromOthers: restore(frontend.fromOthers),
    })),
  }
}

function mapLists<T, U>(lists: Readonly<Partial<Record<Policy, T>>>, map: (list: T) => U): Partial<Record<Policy, U>> {
  const { Cluster, Local } = lists
  return {
    ...(Cluster === undefined ? {} : { Cluster: map(Cluster) }),
    ...(Local === undefined ? {} : { Local: map(Local) }),
  }
}

function describeRoute({ verdict, ...rest }: Route): SentRoute {
  return { ...rest, verdict: verdict.kind === 'to' ? { kind: 'to', policy: verdict.policy } : verdict }
}
