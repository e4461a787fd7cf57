// Which endpoints this node may send connections to, under each traffic policy, and why not the others.

import type { Endpoint } from './endpoints.ts'
import type { Policy } from './types.ts'

export interface ReachableEndpoints {
  /** For Cluster policy; empty when the service port never uses it. */
  readonly cluster: readonly Endpoint[]
  /** For Local policy; empty when the service port never uses it. */
  readonly local: readonly Endpoint[]
  /** Whether some node can send connections somewhere: the difference between dropping and rejecting. */
  readonly anywhere: boolean
}

/** The part of NodeView that topology looks at. */
export interface NodePlace {
  readonly nodeName: string
  readonly zone: string | undefined
}

/** Whether hints narrow the choice; if not, why. */
export type Topology =
  | { readonly kind: 'node hints' }
  | { readonly kind: 'zone hints'; readonly zone: string }
  | { readonly kind: 'everywhere'; readonly because: string }

/** How a policy chooses among the endpoints of a service port, decided from all of them at once. */
export interface Selection {
  readonly policy: Policy
  /** 'draining': none is ready, so those that are terminating and still serve are used. */
  readonly of: 'ready' | 'draining'
  /** Hints narrow Cluster policy only. */
  readonly topology: Topology
  /** Whether those of weight 0 are left out, because others weigh more. */
  readonly drains: boolean
}

/**
 * Usable endpoints are the ready ones. Where there is none, those that are terminating but still serve are used; Cluster
 * and Local policy decide that separately, each from its own candidates. Hints narrow Cluster policy only.
 */
export function reachableEndpoints(
  endpoints: readonly Endpoint[],
  uses: { readonly cluster: boolean; readonly local: boolean },
  node: NodePlace,
): ReachableEndpoints {
  return {
    cluster: uses.cluster ? selectedEndpoints(endpoints, 'Cluster', node) : NONE,
    local: uses.local ? selectedEndpoints(endpoints, 'Local', node) : NONE,
    anywhere: endpoints.some((endpoint) => endpoint.ready || isDraining(endpoint)),
  }
}

/** How the policy chooses among these endpoints on this node. */
export function planSelection(endpoints: readonly Endpoint[], policy: Policy, node: NodePlace): Selection {
  const topology = policy === 'Local' ? LOCAL : planTopology(endpoints, node)
  const ready: Selection = { policy, of: 'ready', topology, drains: false }
  const isUsed = endpoints.some((endpoint) => whyNotSelected(endpoint, ready, node) === undefined)
  const selection: Selection = isUsed ? ready : { ...ready, of: 'draining' }
  return weighsSomething(endpoints, selection, node) ? { ...selection, drains: true } : selection
}

/** Whether some are to be left out for their weight of 0, and others remain. */
function weighsSomething(endpoints: readonly Endpoint[], selection: Selection, node: NodePlace): boolean {
  if (!endpoints.some(({ weight }) => weight === 0)) return false
  return endpoints.some((endpoint) => endpoint.weight > 0 && whyNotSelected(endpoint, selection, node) === undefined)
}

/** Why the policy does not use the endpoint; undefined: it does. */
export function whyNotSelected(
  endpoint: Endpoint,
  { policy, of, topology, drains }: Selection,
  node: NodePlace,
): string | undefined {
  if (policy === 'Local' && !endpoint.isLocal) return 'not on this node, and the policy is Local'
  if (of === 'ready' ? !endpoint.ready : !isDraining(endpoint)) return whyNotReady(endpoint)
  if (drains && endpoint.weight === 0) return 'its weight is 0, and others weigh more'
  switch (topology.kind) {
    case 'everywhere':
      return undefined
    case 'node hints':
      return endpoint.nodeHints?.includes(node.nodeName) === true ? undefined : 'its hints name other nodes'
    case 'zone hints':
      return endpoint.zoneHints?.includes(topology.zone) === true ? undefined : 'its hints name other zones'
  }
}

function selectedEndpoints(endpoints: readonly Endpoint[], policy: Policy, node: NodePlace): readonly Endpoint[] {
  const selection = planSelection(endpoints, policy, node)
  const isSelected = (endpoint: Endpoint) => whyNotSelected(endpoint, selection, node) === undefined
  return endpoints.every(isSelected) ? endpoints : endpoints.filter(isSelected)
}

function whyNotReady(endpoint: Endpoint): string {
  if (isDraining(endpoint)) return 'terminating, and others are ready'
  if (endpoint.terminating) return 'terminating, and no longer serving'
  return 'not ready'
}

function isDraining(endpoint: Endpoint): boolean {
  return endpoint.serving && endpoint.terminating
}

const NONE: readonly never[] = []
const LOCAL: Topology = { kind: 'everywhere', because: 'hints narrow Cluster policy only' }
const NO_READY: Topology = { kind: 'everywhere', because: 'no endpoint is ready' }
const NO_HINTS: Topology = { kind: 'everywhere', because: 'the endpoints have no hints' }
const SOME_HINTS: Topology = { kind: 'everywhere', because: 'a ready endpoint has no hint' }
const NO_ZONE: Topology = { kind: 'everywhere', because: 'the zone of this node is not known' }
const NOT_OURS: Topology = { kind: 'everywhere', because: 'no hint names this node or its zone' }

/**
 * Hints count all or nothing: every ready endpoint must have one, and at least one must be for us; otherwise the
 * controller and this node disagree about the topology, and narrowing would overload or black-hole. Node hints go
 * before zone hints. Without ready endpoints there is nothing to narrow.
 */
function planTopology(endpoints: readonly Endpoint[], { nodeName, zone }: NodePlace): Topology {
  const ready = endpoints.every(isReady) ? endpoints : endpoints.filter(isReady)
  if (ready.length === 0) return NO_READY
  const allHaveNodes = ready.every((endpoint) => hasHints(endpoint.nodeHints))
  if (allHaveNodes && ready.some(({ nodeHints }) => nodeHints?.includes(nodeName) === true)) {
    return { kind: 'node hints' }
  }
  const allHaveZones = ready.every((endpoint) => hasHints(endpoint.zoneHints))
  if (!allHaveZones) return allHaveNodes ? NOT_OURS : ready.some(isHinted) ? SOME_HINTS : NO_HINTS
  if (zone === undefined) return NO_ZONE
  return ready.some(({ zoneHints }) => zoneHints?.includes(zone) === true) ? { kind: 'zone hints', zone } : NOT_OURS
}

function isReady({ ready }: Endpoint): boolean {
  return ready
}

function isHinted({ zoneHints, nodeHints }: Endpoint): boolean {
  return hasHints(zoneHints) || hasHints(nodeHints)
}

function hasHints(hints: readonly string[] | undefined): boolean {
  return hints !== undefined && hints.length > 0
}
