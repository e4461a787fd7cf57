// The decision about a connection, step by step, each with its reason. The model decides; this puts the steps in order.

import type { Protocol } from '../../kube/types.ts'
import { cidrContains, formatCidr, isLoopback, joinHostPort, ipBytes } from '../../lib/ip.ts'
import {
  classifyClient,
  type Client,
  type Connection,
  type Dialled,
  masqueradeTo,
  routeOf,
  whyNotAllowed,
} from '../../model/follow.ts'
import { isRefusedOnLocalhost } from '../../model/localhost.ts'
import { LOCALHOST } from '../../model/node-port-addresses.ts'
import { type Balance, isHash } from '../../model/balance.ts'
import { NO_EJECTIONS, siftEjected } from '../../model/ejections.ts'
import type { Endpoint } from '../../model/endpoints.ts'
import { describeLimits } from '../../model/limits.ts'
import { planSelection, type Topology, whyNotSelected } from '../../model/topology.ts'
import type { Backend, Policy, Route } from '../../model/types.ts'
import { DEFAULT_WEIGHT } from '../../model/weights.ts'
import { decidePing } from './decide-ping.ts'
import { WITHOUT_LOCAL_ANNOTATION } from '../../model/without-local.ts'
import type { Decided, Known } from './known.ts'

export type Outcome = 'to' | 'reject' | 'drop' | 'untouched'

export interface Decision {
  readonly outcome: Outcome
  readonly because: string
  readonly client: Client
  readonly dialled: Dialled | undefined
  /** A listener of the proxy takes it: rules leave it alone. */
  readonly isRelayed?: true
  /** A hash chooses the endpoint: this client does not come to all that are eligible. */
  readonly isHashed?: true
  /** Undefined: any source may connect. */
  readonly sources: { readonly allowed: boolean; readonly why: string } | undefined
  readonly policy: DecidedPolicy | undefined
  /** Every endpoint of the service port. */
  readonly backends: readonly DecidedBackend[]
}

export interface DecidedPolicy {
  /** The field that decides: `internalTrafficPolicy`. */
  readonly field: 'internalTrafficPolicy' | 'externalTrafficPolicy'
  readonly value: Policy
  /** The list that this client gets: with Local, pods and the node get the Cluster list. */
  readonly list: Policy
  readonly why: string
  readonly topology: Topology
}

export interface DecidedBackend {
  readonly ip: string
  readonly port: number
  readonly nodeName: string
  readonly eligible: boolean
  /** Why not; for an eligible one, what is special about it. */
  readonly why: string
  readonly masquerade: boolean
  readonly masqueradeWhy: string
  readonly weight: number | undefined
  /** What part of the new connections it gets; undefined: as much as each other, or nothing. */
  readonly share: number | undefined
}

export function decide(known: Known, decided: Decided, connection: Connection): Decision {
  const client = classifyClient(decided.node, connection, decided.isOwnAddress)
  const { protocol } = connection
  if (protocol !== 'ICMP') return decideConnection(known, decided, { ...connection, protocol }, client)
  const nothing = { client, dialled: undefined, sources: undefined, policy: undefined, backends: [] }
  return { ...nothing, ...(decidePing(known, decided, connection) ?? decideStray(known, decided, connection)) }
}

type Dialling = Connection & { readonly protocol: Protocol }

function decideConnection(known: Known, decided: Decided, connection: Dialling, client: Client): Decision {
  const nothing = { client, sources: undefined, policy: undefined, backends: [] }
  const refused = whyRefusedOnLocalhost(decided, connection)
  if (refused !== undefined) return { ...nothing, dialled: undefined, outcome: 'reject', because: refused }
  const dialled = decided.index.find(connection)
  if (dialled === undefined) return { ...nothing, dialled, ...decideStray(known, decided, connection) }
  const { frontend, view } = dialled
  const refusal = whyNotAllowed(frontend, connection.source)
  const sources =
    frontend.allowedSources === undefined
      ? undefined
      : { allowed: refusal === undefined, why: refusal ?? 'loadBalancerSourceRanges has it' }
  const route = routeOf(frontend, client)
  const policy = describePolicy(decided, dialled, route, client)
  const backends = decideBackends(known, { decided, dialled, route, policy, connection })
  const common = { client, dialled, sources, policy, backends }
  const looksAtRanges = known.mode.semantics.sourceRanges === 'first' || isSentSomewhere(dialled)
  if (refusal !== undefined && looksAtRanges) return { ...common, outcome: 'drop', because: refusal }
  const { verdict } = route
  if (!known.mode.semantics.protocols.includes(connection.protocol) && isSentSomewhere(dialled)) {
    const because = `the ${known.mode.name} mode does not carry ${connection.protocol}`
    return {
      ...common,
      outcome: 'reject',
      because,
      backends: backends.map((each) => ({ ...each, eligible: false, why: because })),
    }
  }
  const isRelayed = frontend.kind === 'nodePort' && isServedOnLocalhost(decided, connection)
  if (verdict.kind === 'to') {
    const eligible = backends.filter((each) => each.eligible).length
    const choice = isRelayed ? '' : CHOICES[verdict.backends.balance]
    const limits = frontend.limits === undefined || isRelayed ? '' : `; ${describeLimits(frontend.limits)}`
    const because = `${view.name} has ${eligible} of ${backends.length} endpoints for this client${choice}${limits}`
    const isHashed = isHash(verdict.backends.balance) ? { isHashed: true as const } : {}
    if (!isRelayed) return { ...common, ...isHashed, outcome: 'to', because }
    return { ...common, outcome: 'to', because: `${because}, and a listener of the proxy relays to them`, isRelayed }
  }
  const because = `${view.name} ${verdict.reason}`
  if (verdict.kind === 'leave') return { ...common, ...decideLeft(known, decided, connection, because) }
  if (isRelayed) return { ...common, outcome: 'untouched', because: `${because}, so the proxy does not listen there` }
  const leaves = connection.inputInterface === undefined && !decided.isOwnAddress(connection.destination)
  const isSeen = frontend.kind === 'clusterIP' || !leaves || known.mode.semantics.refusesNode
  if (isSeen) return { ...common, outcome: verdict.kind, because }
  const silence = `the ${known.mode.name} mode does not look at what the node itself sends to an external address`
  return { ...common, outcome: 'untouched', because: `${because}, but ${silence}` }
}

/** Where a mode puts addresses on a link of the node, one that another port needs is there: then nothing is routed on. */
function decideLeft(
  { mode }: Known,
  { index, isOwnAddress }: Decided,
  { destination }: Dialling,
  because: string,
): Pick<Decision, 'outcome' | 'because'> {
  const isBound = [...index.all()].some(
    ({ frontend }) => frontend.address === destination && frontend.fromOthers.verdict.kind !== 'leave',
  )
  if (mode.semantics.guards !== 'all addresses' || !isBound || isOwnAddress(destination))
    return { outcome: 'untouched', because }
  return { outcome: 'reject', because: `${because}; but ${destination} is an address of this node, for another port` }
}

/** How one is chosen, where the annotation or the flag says. */
const CHOICES: Readonly<Record<Balance, string>> = {
  random: '',
  'hash-connection': ', and a hash of its address and port chooses one',
  'hash-client': ', and a hash of its address chooses one, always the same',
  'least-connections': ', and those with fewer open connections get more',
}

function isServedOnLocalhost({ node }: Decided, { destination }: Connection): boolean {
  return node.localhostNodePorts === 'served by listeners' && destination === LOCALHOST[node.family]
}

/** A node port that rules refuse on loopback addresses. */
function whyRefusedOnLocalhost(
  { node, index }: Decided,
  { destination, protocol, port }: Dialling,
): string | undefined {
  if (!isRefusedOnLocalhost(node, protocol) || !isLoopback(ipBytes(destination))) return undefined
  const dialled = index.nodePort(protocol, port)
  if (dialled === undefined) return undefined
  const why =
    node.localhostNodePorts === 'refused'
      ? 'nodePortAddresses does not name localhost'
      : `${protocol} cannot be relayed`
  return `node port ${port}/${protocol} of ${dialled.view.name} is refused on localhost: ${why}`
}

function isSentSomewhere({ frontend: { fromPods, fromNode, fromOthers } }: Dialled): boolean {
  return [fromPods, fromNode, fromOthers].some(({ verdict }) => verdict.kind === 'to')
}

interface BackendContext {
  readonly decided: Decided
  readonly dialled: Dialled
  readonly route: Route
  readonly policy: DecidedPolicy
  readonly connection: Connection
}

function decideBackends(known: Known, context: BackendContext): DecidedBackend[] {
  const { decided, dialled, route, policy, connection } = context
  const { node, model } = decided
  const endpoints = model.endpointsOf(dialled.view)
  const selection = planSelection(endpoints, policy.list, node)
  const selected = endpoints.filter((endpoint) => whyNotSelected(endpoint, selection, node) === undefined)
  const ejections = dialled.view.connectRetry === true ? new Set(known.ejected.keys()) : NO_EJECTIONS
  const ejected = new Set(siftEjected(selected, ejections).ejected)
  const listed = new Map<string, Backend>(dialled.view.backends.map((each) => [joinHostPort(each.ip, each.port), each]))
  const decideBackend = (endpoint: Endpoint): Omit<DecidedBackend, 'share'> => {
    const { ip, port, nodeName, isLocal } = endpoint
    const text = joinHostPort(ip, port)
    const why =
      whyNotSelected(endpoint, selection, node) ??
      (ejected.has(endpoint) ? `ejected: ${known.ejected.get(text)}` : undefined)
    const backend = listed.get(text) ?? { ip, port, isLocal, ...(nodeName === '' ? { mayBeLocal: true } : {}) }
    const { masquerade, why: masqueradeWhy } = masqueradeTo(route, backend, connection, {
      isOwnAddress: decided.isOwnAddress,
      hairpin: known.mode.semantics.hairpin,
    })
    return {
      ip,
      port,
      nodeName,
      eligible: why === undefined,
      why: why ?? (selection.of === 'draining' ? 'terminating, but it still serves and none is ready' : ''),
      masquerade,
      masqueradeWhy,
      weight: backend.weight,
    }
  }
  return withShares(endpoints.map(decideBackend))
}

function withShares(backends: readonly Omit<DecidedBackend, 'share'>[]): DecidedBackend[] {
  const weights = backends.map(({ eligible, weight = DEFAULT_WEIGHT }) => (eligible ? weight : 0))
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  const isEven = new Set(weights.filter((weight) => weight > 0)).size < 2
  return backends.map((each, i) => ({ ...each, share: isEven || !each.eligible ? undefined : weights[i]! / total }))
}

function describePolicy(decided: Decided, { frontend, view }: Dialled, route: Route, client: Client): DecidedPolicy {
  const service = decided.services.get(`${view.namespace}/${view.service}`)
  const inside = frontend.kind === 'clusterIP'
  const field = inside ? 'internalTrafficPolicy' : 'externalTrafficPolicy'
  const value: Policy = service?.[field] === 'Local' ? 'Local' : 'Cluster'
  const list = listOf(route, value, client, inside)
  const why = list === value ? `spec.${field} is ${value}` : `spec.${field} is ${value}, but ${whyNotLocal(client)}`
  const topology = planSelection(decided.model.endpointsOf(view), list, decided.node).topology
  return { field, value, list, why, topology }
}

/** Clients from outside fall back to other endpoints only where the Service asks for that. */
function whyNotLocal({ kind }: Client): string {
  if (kind === 'other')
    return `no endpoint is on this node, and the annotation ${WITHOUT_LOCAL_ANNOTATION} says to use others`
  return `a connection of ${kind === 'pod' ? 'a pod' : 'the node itself'} is sent to any endpoint at once`
}

/** A verdict that sends nowhere does not name its list: pods and the node get the Cluster list from outside addresses. */
function listOf({ verdict }: Route, value: Policy, { kind }: Client, inside: boolean): Policy {
  if (verdict.kind === 'to') return verdict.policy
  return inside || kind === 'other' ? value : 'Cluster'
}

/** A packet that no frontend takes follows its route, unless the mode guards the addresses of services. */
function decideStray(
  { mode }: Known,
  { node, services, index, isOwnAddress }: Decided,
  { destination, protocol, port }: Connection,
): { outcome: Outcome; because: string } {
  const closed = isOwnAddress(destination) ? index.nodePort(protocol, port) : undefined
  const closedVerdict = closed?.frontend.fromOthers.verdict
  if (
    mode.semantics.refusesNodePorts === 'on every address' &&
    (closedVerdict?.kind === 'reject' || closedVerdict?.kind === 'drop')
  ) {
    const because = `${closed!.view.name} ${closedVerdict.reason}, and its node port is refused even where it is not open`
    return { outcome: closedVerdict.kind, because }
  }
  for (const { view, frontend } of index.all()) {
    if (frontend.address !== destination) continue
    const isGuarded =
      (mode.semantics.guards === 'all addresses' && frontend.fromOthers.verdict.kind !== 'leave') ||
      (mode.semantics.guards === 'cluster IPs' && frontend.kind === 'clusterIP')
    if (!isGuarded && frontend.kind !== 'clusterIP' && protocol !== 'ICMP') continue
    const lacks = protocol === 'ICMP' ? 'does not answer pings' : `has no port ${port}/${protocol}`
    const because = `${destination} belongs to ${view.namespace}/${view.service}, which ${lacks}`
    return { outcome: isGuarded ? 'reject' : 'untouched', because }
  }
  const bytes = ipBytes(destination)
  const range = node.serviceCidrs.find((cidr) => cidrContains(cidr, bytes))
  if (range !== undefined) {
    const owner = [...services.values()].find(({ clusterIPs }) => clusterIPs.includes(destination))
    const because =
      owner === undefined
        ? `${destination} is in the service range ${formatCidr(range)}, and no service has it`
        : `${destination} belongs to ${owner.namespace}/${owner.name}, which this proxy does not serve`
    return { outcome: mode.semantics.unallocated, because }
  }
  const what = protocol === 'ICMP' ? destination : `${joinHostPort(destination, port)}/${protocol}`
  return { outcome: 'untouched', because: `${what} is not a Service address` }
}
