// How many rules a service costs. More of them cost every packet and every sync, so a change here is to be wanted.

import { listsIn } from '../../../../test/support/lists.ts'
import { expect, it } from 'vitest'
import { aNodeView } from '../../../../test/support/arbitrary-views.ts'
import { BackendList } from '../../../model/backend-list.ts'
import type { Frontend, Route, ServicePortView } from '../../../model/types.ts'
import { iptablesPlanner } from './planner.ts'
import type { IptablesSettings } from './settings.ts'

const settings: IptablesSettings = {
  localhostNodePorts: 'closed',
  invalidPackets: 'drop',
  masqueradePorts: 'fully',
  counters: new Set(),
}

interface Shape {
  readonly kinds: readonly Frontend['kind'][]
  readonly endpoints: number
  readonly affinity?: number
}

function aServicePort({ kinds, endpoints, affinity }: Shape): ServicePortView {
  const backends = BackendList.of(
    Array.from({ length: endpoints }, (_, i) => ({ ip: `10.64.0.${i}`, port: 80, isLocal: true })),
  )
  const verdict =
    endpoints === 0
      ? ({ kind: 'reject', reason: 'has no endpoints' } as const)
      : ({ kind: 'to', policy: 'Cluster', backends } as const)
  const route: Route = { verdict, masquerade: true }
  const frontends = kinds.map((kind, i): Frontend => ({
    kind,
    address: kind === 'nodePort' ? undefined : `10.96.0.${i}`,
    protocol: 'TCP',
    port: 80,
    fromPods: kind === 'clusterIP' ? { verdict, masquerade: false } : route,
    fromNode: route,
    fromOthers: route,
    isSplit: false,
    allowedSources: undefined,
    affinitySeconds: affinity,
  }))
  return {
    name: 'ns/svc:p',
    namespace: 'ns',
    service: 'svc',
    portName: 'p',
    protocol: 'TCP',
    frontends,
    lists: listsIn(frontends),
    backends,
    serving: [],
  }
}

it.each<[string, Shape, { chains: number; rules: number }]>([
  ['a cluster IP without endpoints', { kinds: ['clusterIP'], endpoints: 0 }, { chains: 0, rules: 1 }],
  ['a cluster IP with 1 endpoint', { kinds: ['clusterIP'], endpoints: 1 }, { chains: 2, rules: 5 }],
  ['a cluster IP with 10 endpoints', { kinds: ['clusterIP'], endpoints: 10 }, { chains: 11, rules: 32 }],
  ['the same with affinity', { kinds: ['clusterIP'], endpoints: 10, affinity: 60 }, { chains: 11, rules: 42 }],
  ['a node port with 10 endpoints', { kinds: ['clusterIP', 'nodePort'], endpoints: 10 }, { chains: 12, rules: 35 }],
  [
    'a load balancer with 10 endpoints',
    { kinds: ['clusterIP', 'loadBalancerIP', 'nodePort'], endpoints: 10 },
    { chains: 12, rules: 36 },
  ],
])('%s costs what it cost before', (_, shape, budget) => {
  const { chains, rules } = iptablesPlanner(settings).service(aNodeView(), aServicePort(shape), 'small')
  const own = chains.reduce((sum, chain) => sum + chain.rules.length, 0)
  expect({ chains: chains.length, rules: own + rules.length }).toEqual(budget)
})

it('without services there are so many rules', () => {
  const { chains, jumps, sharedRules } = iptablesPlanner(settings).base(aNodeView())
  const own = chains.reduce((sum, { first, last }) => sum + first.length + last.length, 0)
  expect({ chains: chains.length, rules: own, jumps: jumps.length, shared: sharedRules.length }).toEqual({
    chains: 12,
    rules: 8,
    jumps: 14,
    shared: 0,
  })
})
