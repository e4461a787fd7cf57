// Which endpoints a proxy should prefer, by where it is. Pure.

import { zoneLabel } from '../apiserver/objects/node.ts'
import type { Node } from '../apiserver/objects/node.ts'
import type { Service } from '../apiserver/objects/service.ts'
import type { SliceEndpoint } from '../apiserver/objects/endpoints.ts'

export type HintPolicy = 'none' | 'same zone' | 'same node' | 'balanced zones'

const modeAnnotations = ['service.kubernetes.io/topology-mode', 'service.kubernetes.io/topology-aware-hints']

export function hintPolicyOf({ spec, metadata }: Service): HintPolicy {
  switch (spec.trafficDistribution) {
    case 'PreferClose':
    case 'PreferSameZone':
      return 'same zone'
    case 'PreferSameNode':
      return 'same node'
    default: {
      const mode = modeAnnotations.map((name) => metadata.annotations?.[name]).find((value) => value !== undefined)
      return mode?.toLowerCase() === 'auto' ? 'balanced zones' : 'none'
    }
  }
}

/** The endpoints with hints, or without them where the policy has none to give. Only what is ready gets any. */
export function addHints(
  endpoints: readonly SliceEndpoint[],
  policy: HintPolicy,
  nodes: readonly Node[],
): SliceEndpoint[] {
  const bare = endpoints.map(({ hints: _hints, ...endpoint }) => endpoint)
  if (policy === 'none' || (policy === 'balanced zones' && !isBalanced(bare, nodes))) return bare
  return bare.map((endpoint) => {
    const { zone, nodeName, conditions } = endpoint
    if (conditions.ready !== true || zone === undefined) return endpoint
    const forZones = [{ name: zone }]
    if (policy !== 'same node' || nodeName === undefined) return { ...endpoint, hints: { forZones } }
    return { ...endpoint, hints: { forZones, forNodes: [{ name: nodeName }] } }
  })
}

/** How much more than its share an endpoint may get. */
const overload = 1.2

/**
 * The old topology mode keeps traffic in a zone only while no zone's endpoints get much more than their share. Each
 * node counts the same here, whatever its size.
 */
function isBalanced(endpoints: readonly SliceEndpoint[], nodes: readonly Node[]): boolean {
  const ready = endpoints.filter(({ conditions }) => conditions.ready === true)
  if (ready.some(({ zone }) => zone === undefined)) return false
  const nodeZones = nodes.map(({ metadata }) => metadata.labels?.[zoneLabel])
  const zones = new Set(nodeZones)
  if (zones.size < 2 || zones.has(undefined) || ready.length < zones.size) return false
  return [...zones].every((zone) => {
    const share = nodeZones.filter((one) => one === zone).length / nodes.length
    const there = ready.filter((endpoint) => endpoint.zone === zone).length
    return there > 0 && (share * ready.length) / there <= overload
  })
}
