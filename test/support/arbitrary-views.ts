// Random service ports and nodes, for properties of every mode's planner.

import { listsIn } from './lists.ts'
import fc from 'fast-check'
import { type Cidr, type Family, parseCidr } from '../../src/lib/ip.ts'
import type { Protocol } from '../../src/kube/types.ts'
import { BackendList } from '../../src/model/backend-list.ts'
import type {
  Backend,
  Frontend,
  NodeView,
  Route,
  ServicePortChange,
  ServicePortView,
  Verdict,
} from '../../src/model/types.ts'

/** A node with the settings that most tests want; anything can be overridden. */
export function aNodeView(overrides: Partial<NodeView> = {}): NodeView {
  const family = overrides.family ?? 4
  return {
    family,
    nodeName: 'node-0',
    nodeIp: family === 4 ? '10.200.1.10' : 'fd00:200:1::10',
    zone: 'zone-a',
    localDetector: { kind: 'cidr', cidrs: [cidr(family === 4 ? '10.64.0.0/16' : 'fd00:64::/64')] },
    masqueradeAll: false,
    masqueradeMark: 1 << 14,
    nodePortAddresses: { kind: 'only', addresses: [family === 4 ? '10.200.1.10' : 'fd00:200:1::10'] },
    serviceCidrs: [cidr(family === 4 ? '10.96.0.0/12' : 'fd00:96::/108')],
    ...overrides,
  }
}

export function cidr(text: string): Cidr {
  const parsed = parseCidr(text)
  if (parsed === undefined) throw new Error(`Cannot parse ${text}: not a CIDR`)
  return parsed
}

/**
 * Service ports with different names and frontends that do not clash, as the model guarantees. `index` makes both
 * unique; few different values elsewhere, so that changes meet often.
 */
export function arbitraryView(family: Family, index: number): fc.Arbitrary<ServicePortView> {
  return fc
    .record({
      protocol: fc.constantFrom<Protocol>('TCP', 'UDP', 'SCTP'),
      cluster: fc.uniqueArray(arbitraryBackend(family), { maxLength: 5, selector: (b) => `${b.ip} ${b.port}` }),
      external: fc.constantFrom<'Cluster' | 'Local'>('Cluster', 'Local'),
      internal: fc.constantFrom<'Cluster' | 'Local'>('Cluster', 'Local'),
      kinds: fc.subarray<Frontend['kind']>(['externalIP', 'loadBalancerIP', 'nodePort']),
      affinitySeconds: fc.option(fc.constantFrom(10800, 60), { nil: undefined, freq: 2 }),
      sources: fc.option(fc.constantFrom(['10.0.0.0/8'], ['10.1.0.0/16', '192.168.0.0/24']), { nil: undefined }),
    })
    .map((choice) => buildView(family, index, choice))
}

/** Up to four service ports, each at several points in time; undefined: absent. */
export function histories(family: Family): fc.Arbitrary<(ServicePortView | undefined)[][]> {
  return fc.array(
    fc.tuple(...[0, 1, 2, 3].map((index) => fc.option(arbitraryView(family, index), { nil: undefined, freq: 3 }))),
    { minLength: 1, maxLength: 5 },
  )
}

export function changesBetween(
  before: readonly (ServicePortView | undefined)[],
  after: readonly (ServicePortView | undefined)[],
): ServicePortChange[] {
  return after.flatMap((view, i) => {
    const old = before[i]
    return old === undefined && view === undefined ? [] : [{ name: (view ?? old)!.name, before: old, after: view }]
  })
}

/** Eight service ports, the same for the same seed. */
export function sampleViews(family: Family, seed: number): ServicePortView[] {
  return [0, 1, 2, 3, 4, 5, 6, 7].map(
    (index) => fc.sample(arbitraryView(family, index), { numRuns: 1, seed: seed + index })[0]!,
  )
}

interface Choice {
  readonly protocol: Protocol
  readonly cluster: readonly Backend[]
  readonly external: 'Cluster' | 'Local'
  readonly internal: 'Cluster' | 'Local'
  readonly kinds: readonly Frontend['kind'][]
  readonly affinitySeconds: number | undefined
  readonly sources: readonly string[] | undefined
}

function arbitraryBackend(family: Family): fc.Arbitrary<Backend> {
  return fc
    .record({
      host: fc.integer({ min: 1, max: 8 }),
      port: fc.constantFrom(80, 8080),
      isLocal: fc.boolean(),
      weight: fc.constantFrom(undefined, undefined, undefined, 3, 7),
    })
    .map(({ host, port, isLocal, weight }) => ({
      ip: family === 4 ? `10.64.0.${host}` : `fd00:64::${host.toString(16)}`,
      port,
      isLocal,
      weight,
    }))
}

function buildView(family: Family, index: number, choice: Choice): ServicePortView {
  const backends = BackendList.of(choice.cluster)
  const local = BackendList.of(choice.cluster.filter((backend) => backend.isLocal))
  const verdicts = { Cluster: verdict('Cluster', backends, choice), Local: verdict('Local', local, choice) }
  const frontends: Frontend[] = [clusterIp(family, index, { choice, to: verdicts[choice.internal] })]
  for (const kind of choice.kinds) frontends.push(external(family, index, { kind, choice, verdicts }))
  return {
    name: `ns/svc-${index}:p`,
    namespace: 'ns',
    service: `svc-${index}`,
    portName: 'p',
    protocol: choice.protocol,
    frontends,
    lists: listsIn(frontends),
    backends,
    serving: choice.cluster.map((backend) => `${backend.ip}:${backend.port}`),
  }
}

function verdict(policy: 'Cluster' | 'Local', backends: BackendList, choice: Choice): Verdict {
  if (backends.length > 0) return { kind: 'to', policy, backends }
  if (choice.cluster.length > 0) return { kind: 'drop', reason: 'has no local endpoints' }
  return { kind: 'reject', reason: 'has no endpoints' }
}

function clusterIp(family: Family, index: number, { choice, to }: { choice: Choice; to: Verdict }): Frontend {
  return {
    kind: 'clusterIP',
    address: family === 4 ? `10.96.0.${index + 1}` : `fd00:96::${(index + 1).toString(16)}`,
    protocol: choice.protocol,
    port: 80,
    fromPods: { verdict: to, masquerade: false },
    fromNode: { verdict: to, masquerade: true },
    fromOthers: { verdict: to, masquerade: true },
    isSplit: false,
    allowedSources: undefined,
    affinitySeconds: choice.affinitySeconds,
  }
}

function external(
  family: Family,
  index: number,
  {
    kind,
    choice,
    verdicts,
  }: { kind: Frontend['kind']; choice: Choice; verdicts: Record<'Cluster' | 'Local', Verdict> },
): Frontend {
  const third = kind === 'externalIP' ? 1 : 2
  const route = (to: Verdict, masquerade: boolean): Route => ({ verdict: to, masquerade })
  const isLocal = choice.external === 'Local'
  const ip = family === 4 ? `203.0.${third}.${index + 1}` : `fd00:203:${third}::${(index + 1).toString(16)}`
  return {
    kind,
    address: kind === 'nodePort' ? undefined : ip,
    protocol: choice.protocol,
    port: kind === 'nodePort' ? 30000 + index : 80,
    fromPods: route(verdicts.Cluster, !isLocal),
    fromNode: route(verdicts.Cluster, true),
    fromOthers: route(verdicts[choice.external], !isLocal),
    isSplit: isLocal && verdicts.Cluster.kind === 'to',
    allowedSources: kind === 'loadBalancerIP' && family === 4 ? choice.sources?.map(cidr) : undefined,
    affinitySeconds: choice.affinitySeconds,
  }
}
