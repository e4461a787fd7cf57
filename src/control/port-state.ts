// A service port as it is sent: each list of backends once, not with every verdict that uses it.

import type { Frontend, Route, ServicePortView, Verdict } from '../model/types.ts'

type SentVerdict = Exclude<Verdict, { kind: 'to' }> | Omit<Extract<Verdict, { kind: 'to' }>, 'backends'>
type SentRoute = Omit<Route, 'verdict'> & { readonly verdict: SentVerdict }
type Routes = 'fromPods' | 'fromNode' | 'fromOthers'

export type PortState = Omit<ServicePortView, 'frontends'> & {
  readonly frontends: readonly (Omit<Frontend, Routes> & Readonly<Record<Routes, SentRoute>>)[]
}

export function describePort({ frontends, ...rest }: ServicePortView): PortState {
  return {
    ...rest,
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
  const { lists } = port
  const restore = ({ verdict, ...rest }: SentRoute): Route => ({
    ...rest,
    verdict: verdict.kind === 'to' ? { ...verdict, backends: lists[verdict.policy] ?? [] } : verdict,
  })
  return {
    ...port,
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

function describeRoute({ verdict, ...rest }: Route): SentRoute {
  return { ...rest, verdict: verdict.kind === 'to' ? { kind: 'to', policy: verdict.policy } : verdict }
}
