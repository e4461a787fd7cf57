// All ports of one service at once.

import { mostPlaces } from '../lib/apportion.ts'
import { growList } from '../lib/grow-list.ts'
import { maglevSize } from '../lib/maglev.ts'
import { type Balance, isHash } from './balance.ts'
import { claimedFrontends, describeFrontend } from './claims.ts'
import type { ClaimedFrontend, Claims } from './claims.ts'
import type { RetryScope } from './connect-retry.ts'
import type { Ejections } from './ejections.ts'
import { countEndpoints, countLocalReady, mergeEndpoints, portKey, portSources, type PortSource } from './endpoints.ts'
import { planServicePort, sameView } from './frontends.ts'
import type { Rungs } from './shares.ts'
import type { ServiceInfo, ServicePortInfo } from './service-ports.ts'
import { Summary } from './summary.ts'
import type { SliceRecord } from './slice-record.ts'
import type { HealthCheck, NodeView, NoLocalEndpoints, ServicePortName, ServicePortView } from './types.ts'

export interface ServicePlanInput {
  readonly info: ServiceInfo
  /** In order of their keys. */
  readonly slices: readonly SliceRecord[]
  readonly node: NodeView
  readonly claims: Claims
  /** The last plan's views by name. */
  readonly former: ReadonlyMap<ServicePortName, ServicePortView>
  readonly connectRetry?: RetryScope | undefined
  readonly ejections?: Ejections | undefined
  /** The ways to choose that the mode has; absent: all. */
  readonly balances?: readonly Balance[] | undefined
  /** Whether the mode can limit connections, asked where a service wants limits; absent: yes. */
  readonly canLimit?: (() => boolean) | undefined
  /** With least connections, of backends that get a smaller share, by service port. */
  readonly rungs?: ReadonlyMap<ServicePortName, Rungs> | undefined
}

export interface ServicePlan {
  /** In order of the service's ports, without those over the limit. An unchanged view is the same object. */
  readonly views: readonly ServicePortView[]
  /** What ports ask for and do not get. */
  readonly losses: readonly { readonly name: ServicePortName; readonly messages: readonly string[] }[]
  readonly noLocalEndpoints: NoLocalEndpoints
  readonly healthCheck: HealthCheck | undefined
}

/**
 * The most kernel entries of one service. A tenant writes addresses, ports, endpoints and allowed sources, and their numbers
 * multiply: 10,000 ports for 10,000 endpoints fit into a few megabytes and would need a hundred million entries on every node. The
 * largest known service, in a cluster of 5,000 nodes, needs a quarter of this.
 */
export const MOST_ENTRIES = 1_000_000

export function planServicePorts(input: ServicePlanInput): ServicePlan {
  const { info, slices, node, claims, former, connectRetry, ejections, balances } = input
  const sources = portSources(slices)
  const noLocalEndpoints = { internal: 0, external: 0 }
  const losses: { name: ServicePortName; messages: string[] }[] = []
  let entries = 0
  let views: readonly ServicePortView[] = NONE
  for (const port of info.ports) {
    const previous = former.get(port.name)
    const ofPort = sources.get(portKey(port.portName, port.protocol)) ?? NONE
    const needed = entriesOf(port, ofPort, node)
    if (entries + needed > MOST_ENTRIES) {
      const message = `the port is left out: with ${needed} entries in the kernel, the service would have more than ${MOST_ENTRIES}`
      losses.push({ name: port.name, messages: [message] })
      continue
    }
    entries += needed
    const endpoints = mergeEndpoints(ofPort, node.nodeName, info.annotations.weights)
    const claimed = claimedFrontends(port)
    const owned = claims.ownedBy(port, claimed)
    if (owned.length < claimed.length) losses.push({ name: port.name, messages: describeLosses(port, claimed, claims) })
    const { view, lacksLocal } = planServicePort({
      port,
      endpoints,
      node,
      owned,
      previous,
      connectRetry,
      ejections,
      balances,
      canLimit: input.canLimit,
      rungs: input.rungs?.get(port.name),
    })
    if (lacksLocal.internal) noLocalEndpoints.internal++
    if (lacksLocal.external) noLocalEndpoints.external++
    views = growList(views, previous !== undefined && sameView(previous, view) ? previous : view)
  }
  return {
    // A copy: a list that grew reserves memory.
    views: views.length === 1 ? views : views.slice(),
    losses,
    noLocalEndpoints,
    healthCheck: healthCheckOf(info, () => countLocalReady(sources.values(), node.nodeName)),
  }
}

function describeLosses(port: ServicePortInfo, claimed: readonly ClaimedFrontend[], claims: Claims): string[] {
  const summary = new Summary()
  for (const frontend of claimed) {
    if (claims.owner(frontend) === port) continue
    summary.add(
      () => `${describeFrontend(frontend)} belongs to ${claims.describeOwner(frontend)}; this port does not get it`,
    )
  }
  const messages: string[] = []
  summary.addTo(messages)
  return messages
}

const NONE: readonly never[] = []

/** How many entries the port needs where each frontend has a list of its own, as in nftables mode. Counted before any is made. */
function entriesOf(port: ServicePortInfo, sources: readonly PortSource[], node: NodeView): number {
  const { loadBalancerIPs, externalIPs, sourceRanges } = port.service
  const frontends = 2 + loadBalancerIPs.length + externalIPs.length
  // The node's own connections to a load balancer's address have that address as their source.
  const allowed = sourceRanges.length === 0 ? 0 : sourceRanges.length + loadBalancerIPs.length
  return frontends * (1 + countPlaces(port, sources, node)) + loadBalancerIPs.length * allowed
}

/** The most places of a list. Two endpoints that differ in weight may need 256. */
function countPlaces({ service: { annotations } }: ServicePortInfo, sources: readonly PortSource[], node: NodeView) {
  const endpoints = countEndpoints(sources)
  const balance = annotations.balance ?? node.balance ?? 'random'
  if (isHash(balance)) return maglevSize(endpoints)
  const mayDiffer =
    balance === 'least-connections' ||
    annotations.weights !== undefined ||
    sources.some(({ record }) => record.weights !== undefined)
  return mayDiffer && endpoints > 1 ? mostPlaces(endpoints) : endpoints
}

function healthCheckOf(info: ServiceInfo, countLocal: () => number): HealthCheck | undefined {
  const { namespace, name, healthCheckNodePort: port } = info
  return port === 0 ? undefined : { namespace, service: name, port, localEndpoints: countLocal() }
}
