// What happens to a connection: a service port, its endpoints and this node become frontends with their routes.
//
// The packet semantics are those of kube-proxy's nftables and iptables modes, decided here once for every mode:
// - Traffic to a cluster IP follows the internal policy and keeps its source, unless it comes from outside the cluster.
// - Traffic to an external address under policy Cluster may leave this node again, so replies must come back through it:
//   the source is masqueraded.
// - Under policy Local the source is kept and only endpoints on this node are used. Pods and the node itself are short
//   circuits: they would reach the load balancer and be sent to some node that has endpoints, so they get the Cluster
//   list at once. The node's own source may be the load balancer's address, and must be masqueraded.

import { cidrContains, compareCidrs, formatCidr, parseIp, ipBytes } from '../lib/ip.ts'
import type { Cidr, Family } from '../lib/ip.ts'
import { backendLists, type BackendLists, servingList } from './backends.ts'
import { type Balance, balanceFor } from './balance.ts'
import type { ClaimedFrontend } from './claims.ts'
import { isRetried, type RetryScope } from './connect-retry.ts'
import { planEnds } from './ends.ts'
import { NO_EJECTIONS, siftEjected, type Ejections } from './ejections.ts'
import type { Endpoint } from './endpoints.ts'
import { sameLimits } from './limits.ts'
import type { Rungs } from './shares.ts'
import type { ServiceInfo, ServicePortInfo } from './service-ports.ts'
import { reachableEndpoints, type ReachableEndpoints } from './topology.ts'
import type { Backend, Frontend, FrontendKind, NodeView, Route, ServicePortView, Verdict } from './types.ts'

export interface PlanInput {
  readonly port: ServicePortInfo
  /** As mergeEndpoints() returns them. */
  readonly endpoints: readonly Endpoint[]
  readonly node: NodeView
  /** The frontends that the service port gets, of those that it claims. */
  readonly owned: readonly ClaimedFrontend[]
  /** The last view: its lists are reused where they are the same. */
  readonly previous: ServicePortView | undefined
  /** Whether connections are retried where the service has no annotation; absent: no. */
  readonly connectRetry?: RetryScope | undefined
  /** Backends that do not answer; ignored where connections are not retried. */
  readonly ejections?: Ejections | undefined
  /** The ways to choose that the mode has; absent: all. */
  readonly balances?: readonly Balance[] | undefined
  /** Whether the mode can limit connections, asked where a service wants limits; absent: yes. */
  readonly canLimit?: (() => boolean) | undefined
  /** With least connections, of backends that get a smaller share. */
  readonly rungs?: Rungs | undefined
}

export interface PlannedServicePort {
  readonly view: ServicePortView
  /** Whether the policy is Local and all endpoints are elsewhere. */
  readonly lacksLocal: { readonly internal: boolean; readonly external: boolean }
}

export function planServicePort(input: PlanInput): PlannedServicePort {
  const { port, endpoints, node, owned, previous } = input
  const { service } = port
  const ends = port.protocol === 'TCP' ? service.annotations.ends : undefined
  const retries = port.protocol === 'TCP' && isRetried(service.annotations.connectRetry, input.connectRetry ?? false)
  const inside = owned.some(({ address }) => address === service.clusterIP)
  const outside = owned.length > (inside ? 1 : 0)
  const internalLocal = inside && service.internalPolicyLocal
  const wantsLocal = outside && service.externalPolicyLocal
  // External policy Local needs the Cluster list for its short circuits.
  const uses = { cluster: outside || (inside && !internalLocal), local: internalLocal || wantsLocal }
  const reachable = reachableEndpoints(endpoints, uses, node)
  const sifted = sift(reachable, retries ? (input.ejections ?? NO_EJECTIONS) : NO_EJECTIONS)
  const balance = balanceFor(service.annotations.balance, { node: node.balance, able: input.balances })
  const lists = backendLists(endpoints, sifted, { balance, rungs: input.rungs, previous })
  const verdicts = policyVerdicts(lists, reachable.anywhere)
  const hasNoLocal = verdicts.local.kind === 'drop'
  const withoutLocal = service.annotations.withoutLocal
  const externalLocal = wantsLocal && !(hasNoLocal && withoutLocal === 'use others')
  const internal = internalRoutes(internalLocal ? verdicts.local : verdicts.cluster, node)
  const external = outside
    ? externalRoutes(verdicts, { isLocal: externalLocal, fallsBack: wantsLocal }, node)
    : internal
  const isLeft = wantsLocal && withoutLocal === 'leave alone'
  const allowedSources = outside ? allowedSourcesOf(service, node) : undefined
  const { limits: wanted } = service.annotations
  const limits = wanted === undefined || input.canLimit?.() === false ? undefined : wanted
  const balancers = outside ? new Set(service.loadBalancerIPs) : NO_ADDRESSES
  return {
    view: {
      name: port.name,
      namespace: service.namespace,
      service: service.name,
      portName: port.portName,
      protocol: port.protocol,
      frontends: owned.map((frontend): Frontend => {
        const kind = kindOf(frontend, service.clusterIP, balancers)
        const isVip = kind === 'loadBalancerIP' || kind === 'externalIP'
        const routes = kind === 'clusterIP' ? internal : external
        const { fromPods, fromNode, fromOthers } = isLeft && isVip ? leaveAlone(routes) : routes
        return {
          kind,
          address: frontend.address,
          protocol: frontend.protocol,
          port: frontend.port,
          fromPods,
          fromNode,
          fromOthers,
          isSplit: kind !== 'clusterIP' && externalLocal && verdicts.cluster.kind === 'to',
          allowedSources: kind === 'loadBalancerIP' ? allowedSources : undefined,
          affinitySeconds: service.affinitySeconds,
          limits,
        }
      }),
      lists: usedLists(uses.cluster ? verdicts.cluster : undefined, uses.local ? verdicts.local : undefined),
      backends: lists.union,
      serving: port.protocol === 'UDP' ? servingList(endpoints, previous) : NONE,
      connectRetry: retries ? true : undefined,
      ejected: sifted.ejected.length === 0 ? undefined : ejectedBackends(sifted.ejected, previous),
      healthCheckNodePort: service.healthCheckNodePort === 0 ? undefined : service.healthCheckNodePort,
      ends: ends === undefined ? undefined : planEnds(endpoints, ends, previous?.ends),
    },
    lacksLocal: { internal: internalLocal && hasNoLocal, external: wantsLocal && hasNoLocal },
  }
}

/** Literals and no spreads: V8 reserves memory in an object that was spread, and there are very many of these. */
function usedLists(cluster: Verdict | undefined, local: Verdict | undefined): ServicePortView['lists'] {
  const Cluster = cluster?.kind === 'to' ? cluster.backends : undefined
  const Local = local?.kind === 'to' ? local.backends : undefined
  if (Cluster === undefined) return Local === undefined ? NO_LISTS : { Local }
  return Local === undefined ? { Cluster } : { Cluster, Local }
}

export function sameView(a: ServicePortView, b: ServicePortView): boolean {
  return (
    a.protocol === b.protocol &&
    a.backends === b.backends &&
    a.serving === b.serving &&
    a.connectRetry === b.connectRetry &&
    a.ejected === b.ejected &&
    a.healthCheckNodePort === b.healthCheckNodePort &&
    a.ends === b.ends &&
    a.frontends.length === b.frontends.length &&
    a.frontends.every((frontend, i) => sameFrontend(frontend, b.frontends[i] as Frontend))
  )
}

interface SiftedEndpoints {
  readonly cluster: readonly Endpoint[]
  readonly local: readonly Endpoint[]
  /** In both lists, or in one. */
  readonly ejected: readonly Endpoint[]
}

/** What the policies allow, without ejected endpoints. */
function sift({ cluster, local }: ReachableEndpoints, ejections: Ejections): SiftedEndpoints {
  if (ejections.size === 0) return { cluster, local, ejected: NONE }
  const ofCluster = siftEjected(cluster, ejections)
  const ofLocal = siftEjected(local, ejections)
  return {
    cluster: ofCluster.kept,
    local: ofLocal.kept,
    ejected: [...new Set([...ofCluster.ejected, ...ofLocal.ejected])],
  }
}

function ejectedBackends(
  ejected: readonly Endpoint[],
  previous: ServicePortView | undefined,
): readonly Backend[] | undefined {
  const before = previous?.ejected
  const isSame =
    before?.length === ejected.length &&
    before.every(({ ip, port }, i) => ip === ejected[i]?.ip && port === ejected[i]?.port)
  return isSame ? before : ejected.map(({ ip, port, isLocal }) => ({ ip, port, isLocal }))
}

type Routes = Pick<Frontend, 'fromPods' | 'fromNode' | 'fromOthers'>

interface PolicyVerdicts {
  readonly cluster: Verdict
  readonly local: Verdict
}

const NONE: readonly never[] = []
const NO_LISTS: ServicePortView['lists'] = {}
const NO_ADDRESSES: ReadonlySet<string> = new Set()
const REJECT: Verdict = { kind: 'reject', reason: 'has no endpoints' }
const DROP: Verdict = { kind: 'drop', reason: 'has no local endpoints' }
const LEFT: Route = {
  verdict: { kind: 'leave', reason: 'has no local endpoints, and is annotated to leave such packets alone' },
  masquerade: false,
}

function policyVerdicts(lists: BackendLists, anywhere: boolean): PolicyVerdicts {
  if (!anywhere) return { cluster: REJECT, local: REJECT }
  return {
    // Endpoints that can be used anywhere are in the Cluster list, so an empty one means that nothing uses it.
    cluster: lists.cluster.length === 0 ? REJECT : { kind: 'to', policy: 'Cluster', backends: lists.cluster },
    local: lists.local.length === 0 ? DROP : { kind: 'to', policy: 'Local', backends: lists.local },
  }
}

function internalRoutes(verdict: Verdict, node: NodeView): Routes {
  if (node.masqueradeAll) return sameForAll(routeTo(verdict, true, WHY.masqueradeAll))
  // Without a detector, clients outside the cluster look like those inside.
  if (node.localDetector.kind === 'none') return sameForAll(routeTo(verdict, false, WHY.noDetector))
  const masqueraded = routeTo(verdict, true, WHY.notAPod)
  return { fromPods: routeTo(verdict, false, WHY.pod), fromNode: masqueraded, fromOthers: masqueraded }
}

/** `fallsBack`: the policy is Local, and no endpoint is. */
function externalRoutes(
  verdicts: PolicyVerdicts,
  { isLocal, fallsBack }: { readonly isLocal: boolean; readonly fallsBack: boolean },
  node: NodeView,
): Routes {
  if (isLocal) return externalLocalRoutes(verdicts, node)
  return sameForAll(routeTo(verdicts.cluster, true, fallsBack ? WHY.externalFallback : WHY.externalCluster))
}

/** In place of refusing them. */
function leaveAlone({ fromPods, fromNode, fromOthers }: Routes): Routes {
  const left = (route: Route) => (route.verdict.kind === 'to' ? route : LEFT)
  return { fromPods: left(fromPods), fromNode: left(fromNode), fromOthers: left(fromOthers) }
}

function externalLocalRoutes(verdicts: PolicyVerdicts, node: NodeView): Routes {
  const fromOthers = routeTo(verdicts.local, false, WHY.externalLocal)
  return {
    fromPods:
      node.localDetector.kind === 'none' ? fromOthers : routeTo(verdicts.cluster, false, WHY.shortCircuitOfPods),
    fromNode: routeTo(verdicts.cluster, true, WHY.shortCircuitOfNode),
    fromOthers,
  }
}

/** Why the source of a connection is kept, or becomes an address of this node. */
const WHY = {
  masqueradeAll: 'masqueradeAll is set',
  noDetector:
    'pods cannot be distinguished from other clients (detectLocalMode finds nothing), so all keep their source',
  pod: 'pods keep their source at a cluster IP',
  notAPod: 'at a cluster IP, what does not come from a pod is masqueraded, so that replies come back through this node',
  externalCluster:
    'externalTrafficPolicy Cluster: the endpoint may be on another node, and replies must come back through this one',
  externalFallback:
    'externalTrafficPolicy Local, but no endpoint is on this node, and the Service is annotated to use others: replies must come back through this node',
  externalLocal: 'externalTrafficPolicy Local keeps the source',
  shortCircuitOfPods: 'externalTrafficPolicy Local, but pods are sent to any endpoint at once, and keep their source',
  shortCircuitOfNode:
    'externalTrafficPolicy Local, but the node itself is sent to any endpoint at once, and its source may be the address of the load balancer',
} as const

function routeTo(verdict: Verdict, masquerade: boolean, why: string): Route {
  return verdict.kind === 'to' ? { verdict, masquerade, why } : { verdict, masquerade: false }
}

function sameForAll(route: Route): Routes {
  return { fromPods: route, fromNode: route, fromOthers: route }
}

function kindOf({ address }: ClaimedFrontend, clusterIP: string, balancers: ReadonlySet<string>): FrontendKind {
  if (address === undefined) return 'nodePort'
  if (address === clusterIP) return 'clusterIP'
  return balancers.has(address) ? 'loadBalancerIP' : 'externalIP'
}

/**
 * Where a load balancer's address is also bound on this node, the node's own connections to it have it as their source: allowed
 * when the node is.
 */
function allowedSourcesOf(service: ServiceInfo, node: NodeView): readonly Cidr[] | undefined {
  const { sourceRanges, loadBalancerIPs } = service
  if (sourceRanges.length === 0 || loadBalancerIPs.length === 0) return undefined
  const nodeIp = parseIp(node.nodeIp)
  if (nodeIp === undefined || !sourceRanges.some((range) => cidrContains(range, nodeIp))) return sourceRanges
  const own = loadBalancerIPs.map((address) => singleAddress(address, node.family))
  const known = new Set(sourceRanges.map(formatCidr))
  const added = own.filter((cidr) => !known.has(formatCidr(cidr)))
  return [...sourceRanges, ...added].sort(compareCidrs)
}

function singleAddress(address: string, family: Family): Cidr {
  return { family, network: ipBytes(address), prefix: family === 4 ? 32 : 128 }
}

export function sameFrontend(a: Frontend, b: Frontend): boolean {
  return (
    a.kind === b.kind &&
    a.address === b.address &&
    a.protocol === b.protocol &&
    a.port === b.port &&
    a.affinitySeconds === b.affinitySeconds &&
    sameLimits(a.limits, b.limits) &&
    sameRoute(a.fromPods, b.fromPods) &&
    sameRoute(a.fromNode, b.fromNode) &&
    sameRoute(a.fromOthers, b.fromOthers) &&
    sameSources(a.allowedSources, b.allowedSources)
  )
}

function sameRoute(a: Route, b: Route): boolean {
  if (a.masquerade !== b.masquerade || a.why !== b.why || a.verdict.kind !== b.verdict.kind) return false
  if (a.verdict.kind !== 'to' || b.verdict.kind !== 'to') return true
  return a.verdict.policy === b.verdict.policy && a.verdict.backends === b.verdict.backends
}

export function sameSources(a: readonly Cidr[] | undefined, b: readonly Cidr[] | undefined): boolean {
  if (a === b) return true
  if (a === undefined || b === undefined) return false
  return a.length === b.length && a.every((cidr, i) => compareCidrs(cidr, b[i] as Cidr) === 0)
}
