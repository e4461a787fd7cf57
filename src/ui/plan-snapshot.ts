// Plans the snapshot that the page draws.

import type { StateAnswer } from '../serve/control/state.ts'
import type { Known } from '../diagnose/explain/known.ts'
import type { EndpointSlice, Service } from '../kube/types.ts'
import { canonicalIp, joinHostPort } from '../lib/ip.ts'
import { isRetried, type RetryScope } from '../model/connect-retry.ts'
import { readAnnotations } from '../model/annotations.ts'
import { type Balance, balanceFor, BALANCES } from '../model/balance.ts'
import { judgeBackends, type BackendVerdict, type BackendVerdicts } from './judge-backends.ts'
import type {
  BackendInfo,
  DeploymentInfo,
  NodeInfo,
  PodInfo,
  ProxyInfo,
  ServiceInfo,
  ServicePortInfo,
  Snapshot,
} from './protocol.ts'

/** With more, the page would not be readable, and each change would be expensive. */
export const MOST_SERVICES = 300
export const MOST_PODS = 1000
export const MOST_BACKENDS = 400

export interface ObservedNode {
  readonly name: string
  readonly addresses: readonly string[]
  readonly podRanges: readonly string[]
  readonly zone: string | null
  /** The mode that it was started in. */
  readonly asked: string
  readonly pid: number | null
  readonly restarts: number
  /** The last answer of its proxy, and what follows from it; undefined: none yet. */
  readonly state: StateAnswer | undefined
  readonly known: Known | undefined
  /** Why the proxy does not answer. */
  readonly error: string | undefined
}

export type ClusterFacts = Pick<Snapshot, 'kind' | 'name' | 'can' | 'terminal' | 'apiServer' | 'outside' | 'load'> & {
  readonly nodes: readonly ObservedNode[]
  readonly pods: readonly PodInfo[]
  readonly deployments: readonly DeploymentInfo[]
  /** Of the API. */
  readonly services: readonly Service[]
  readonly slices: readonly EndpointSlice[]
  /** By `namespace/name`. */
  readonly selectors: ReadonlyMap<string, Readonly<Record<string, string>>>
}

export function planSnapshot(facts: ClusterFacts): Snapshot {
  const { kind, name, can, terminal, apiServer, outside, load } = facts
  const { services, pods, nodes, deployments } = facts
  const context = contextOf(facts)
  const shown = services
    .toSorted(byImportance)
    .slice(0, MOST_SERVICES)
    .map((service) => describeService(service, context))
  return {
    kind,
    name,
    can,
    terminal,
    apiServer,
    nodes: nodes.map(describeNode),
    pods: pods.slice(0, MOST_PODS),
    deployments,
    outside,
    load,
    services: shown,
    leftOut: {
      services: Math.max(0, services.length - MOST_SERVICES),
      pods: Math.max(0, pods.length - MOST_PODS),
      backends: shown.reduce((sum, { ports }) => ports.reduce((all, { moreBackends }) => all + moreBackends, sum), 0),
    },
  }
}

interface Context {
  readonly slices: ReadonlyMap<string, readonly EndpointSlice[]>
  readonly pods: ReadonlyMap<string, PodInfo>
  readonly verdicts: readonly { readonly node: string; readonly of: BackendVerdicts }[]
  readonly selectors: ClusterFacts['selectors']
  /** What the operator allows. */
  readonly connectRetry: RetryScope
  /** By node: what its mode can do, and what it does where a Service does not say. */
  readonly balances: readonly {
    readonly name: string
    readonly able: readonly Balance[]
    readonly node: Balance | undefined
  }[]
}

function contextOf({ slices, pods, nodes, selectors }: ClusterFacts): Context {
  const byService = new Map<string, EndpointSlice[]>()
  for (const slice of slices) {
    const key = `${slice.namespace}/${slice.serviceName}`
    const list = byService.get(key)
    if (list === undefined) byService.set(key, [slice])
    else list.push(slice)
  }
  return {
    slices: byService,
    pods: new Map(pods.flatMap((pod) => (pod.hostNetwork ? [] : pod.ips.map((ip) => [ip, pod])))),
    verdicts: nodes.flatMap(({ name, known }) =>
      known === undefined ? [] : [{ node: name, of: judgeBackends(known) }],
    ),
    selectors,
    connectRetry: scopeIn(nodes.map(({ known }) => known?.connectRetry ?? false)),
    balances: nodes.flatMap(({ name, known }) =>
      known === undefined
        ? []
        : [{ name, able: known.mode.balances, node: (known.nodes[4] ?? known.nodes[6])?.balance }],
    ),
  }
}

/** Of all nodes together. */
function scopeIn(scopes: readonly RetryScope[]): RetryScope {
  return scopes.includes(true) || (scopes.includes('annotated') && 'annotated')
}

export function isSystem({ namespace, name }: { readonly namespace: string; readonly name: string }): boolean {
  return namespace === 'kube-system' || (namespace === 'default' && name === 'kubernetes')
}

function byImportance(a: Service, b: Service): number {
  const order = Number(isSystem(a)) - Number(isSystem(b))
  if (order !== 0) return order
  return `${a.namespace}/${a.name}` < `${b.namespace}/${b.name}` ? -1 : 1
}

function describeNode({ name, addresses, podRanges, zone, asked, state, ...facts }: ObservedNode): NodeInfo {
  return {
    name,
    addresses,
    podRanges,
    zone,
    mode: state?.mode.name ?? asked,
    proxy: describeProxy({ state, ...facts }),
  }
}

function describeProxy({
  state,
  error,
  pid,
  restarts,
}: Pick<ObservedNode, 'state' | 'error' | 'pid' | 'restarts'>): ProxyInfo {
  const hasBegun = state?.families.every(({ sync }) => sync.lastSyncMs !== undefined) === true
  return {
    state: error !== undefined || state === undefined ? 'away' : hasBegun ? 'ready' : 'starting',
    pid: error === undefined ? (state?.pid ?? pid) : pid,
    restarts,
    families: (state?.families ?? []).map(({ family, sync, drift }) => ({
      family,
      refused: sync.refused,
      holds: drift.holds,
      reason: drift.reason ?? null,
      drifts: drift.times,
    })),
    error: error ?? null,
  }
}

function describeService(service: Service, context: Context): ServiceInfo {
  const { namespace, name, type } = service
  const slices = context.slices.get(`${namespace}/${name}`) ?? []
  return {
    namespace,
    name,
    type,
    clusterIPs: service.clusterIPs,
    externalIPs: service.externalIPs,
    loadBalancerIPs: service.ingress.flatMap(({ ip }) => (ip === '' ? [] : [ip])),
    loadBalancerSourceRanges: service.loadBalancerSourceRanges,
    internalTrafficPolicy: service.internalTrafficPolicy === 'Local' ? 'Local' : 'Cluster',
    externalTrafficPolicy: service.externalTrafficPolicy === 'Local' ? 'Local' : 'Cluster',
    affinitySeconds: service.sessionAffinity === 'ClientIP' ? (service.affinityTimeoutSeconds ?? 10_800) : null,
    connectRetry: isRetried(readAnnotations(service.annotations, []).connectRetry, context.connectRetry),
    ...describeBalance(service, context.balances),
    healthCheckNodePort: service.healthCheckNodePort === 0 ? null : service.healthCheckNodePort,
    selector: context.selectors.get(`${namespace}/${name}`) ?? {},
    ports: service.ports.map((port) => describePort(service, port, { slices, context })),
    system: isSystem(service),
  }
}

/** Most nodes choose in the same way. */
function describeBalance(
  { annotations }: Service,
  nodes: Context['balances'],
): Pick<ServiceInfo, 'balance' | 'otherBalances'> {
  const asked = readAnnotations(annotations, []).balance
  const balance = balanceFor(asked, { node: nodes[0]?.node, able: BALANCES })
  const inForce = nodes.map(({ name, ...of }) => [name, balanceFor(asked, of)] as const)
  return { balance, otherBalances: Object.fromEntries(inForce.filter(([, each]) => each !== balance)) }
}

function describePort(
  { namespace, name }: Service,
  port: Service['ports'][number],
  { slices, context }: { readonly slices: readonly EndpointSlice[]; readonly context: Context },
): ServicePortInfo {
  const id = port.name === '' ? `${namespace}/${name}` : `${namespace}/${name}:${port.name}`
  const backends = new Map<string, BackendInfo>()
  const leftOut = new Set<string>()
  const judges = context.verdicts.map(({ node, of }) => ({ node, of: of.get(id) }))
  for (const slice of slices) {
    const found = slice.ports.find((each) => each.name === port.name && each.protocol === port.protocol)
    if (found?.port === undefined) continue
    for (const endpoint of slice.endpoints) {
      const ip = canonicalIp(endpoint.address) ?? endpoint.address
      const address = joinHostPort(ip, found.port)
      if (backends.has(address)) continue
      if (backends.size >= MOST_BACKENDS) {
        leftOut.add(address)
        continue
      }
      const pod = context.pods.get(ip)
      backends.set(address, {
        address,
        pod: pod === undefined ? null : `${pod.namespace}/${pod.name}`,
        node: endpoint.nodeName ?? pod?.node ?? '',
        ready: endpoint.ready,
        serving: endpoint.serving,
        terminating: endpoint.terminating,
        ...verdictsOn(address, judges),
      })
    }
  }
  return {
    id,
    name: port.name,
    protocol: port.protocol,
    port: port.port,
    nodePort: port.nodePort === 0 ? null : port.nodePort,
    backends: [...backends.values()],
    moreBackends: leftOut.size,
  }
}

const USED_EVERYWHERE: Pick<BackendInfo, 'notOn' | 'ejectedOn'> = { notOn: {}, ejectedOn: [] }

/** The proxies' verdicts. Nearly all backends are used everywhere: these share an object. */
function verdictsOn(
  address: string,
  judges: readonly { readonly node: string; readonly of: ReadonlyMap<string, BackendVerdict> | undefined }[],
): Pick<BackendInfo, 'notOn' | 'ejectedOn'> {
  if (judges.every(({ of }) => isUsed(of?.get(address)))) return USED_EVERYWHERE
  const verdicts = judges.map(({ node, of }) => ({ node, verdict: of?.get(address) }))
  return {
    notOn: Object.fromEntries(verdicts.flatMap(({ node, verdict }) => whyNot(node, verdict))),
    ejectedOn: verdicts.flatMap(({ node, verdict }) => (verdict?.ejected === true ? [node] : [])),
  }
}

function isUsed(verdict: BackendVerdict | undefined): boolean {
  return verdict !== undefined && verdict.why === undefined && !verdict.ejected
}

function whyNot(node: string, verdict: BackendVerdict | undefined): [string, string][] {
  if (verdict === undefined) return [[node, 'its proxy does not know of it']]
  return verdict.why === undefined ? [] : [[node, verdict.why]]
}
