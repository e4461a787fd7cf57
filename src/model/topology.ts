// Which endpoints this node may send connections to, under each traffic policy.

import type { Endpoint } from './endpoints.ts'

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
    cluster: uses.cluster ? readyElseDraining(endpoints, topologyFilter(endpoints, node)) : [],
    local: uses.local ? readyElseDraining(endpoints, (endpoint) => endpoint.isLocal) : [],
    anywhere: endpoints.some((endpoint) => endpoint.ready || isDraining(endpoint)),
  }
}

function readyElseDraining(endpoints: readonly Endpoint[], filter: (endpoint: Endpoint) => boolean): Endpoint[] {
  const ready = endpoints.filter((endpoint) => endpoint.ready && filter(endpoint))
  if (ready.length > 0) return ready
  return endpoints.filter((endpoint) => isDraining(endpoint) && filter(endpoint))
}

function isDraining(endpoint: Endpoint): boolean {
  return endpoint.serving && endpoint.terminating
}

/**
 * Hints count all or nothing: every ready endpoint must have one, and at least one must be for us; otherwise the
 * controller and this node disagree about the topology, and narrowing would overload or black-hole. Node hints go
 * before zone hints. Without ready endpoints there is nothing to narrow.
 */
function topologyFilter(endpoints: readonly Endpoint[], node: NodePlace): (endpoint: Endpoint) => boolean {
  const ready = endpoints.filter((endpoint) => endpoint.ready)
  const forNode = (endpoint: Endpoint) => endpoint.nodeHints?.includes(node.nodeName) === true
  if (ready.every((endpoint) => hasHints(endpoint.nodeHints)) && ready.some(forNode)) return forNode
  const { zone } = node
  if (zone === undefined) return () => true
  const forZone = (endpoint: Endpoint) => endpoint.zoneHints?.includes(zone) === true
  if (ready.every((endpoint) => hasHints(endpoint.zoneHints)) && ready.some(forZone)) return forZone
  return () => true
}

function hasHints(hints: readonly string[] | undefined): boolean {
  return hints !== undefined && hints.length > 0
}
