// The sets and maps of our table: what they are keyed by and what they say.

import type { Family } from '../../../lib/ip.ts'
import type { FieldType, NftSet } from '../../../nftables/types.ts'
import { makeSet } from '../../../nftables/make-set.ts'
import { addressType, byFamily, guardSchema, NODE_PORT_KEY, serviceKey } from '../../../table-sync/plan/schema.ts'
import { SETS } from './names.ts'

export type Schema = Readonly<Record<keyof typeof SETS, NftSet>>

/** What varies with services is an element of one of these. */
export const schemaFor: (family: Family) => Schema = byFamily(buildSchema)

/** A map from clients to their endpoints, filled by packets. */
export function affinityMap(family: Family, name: string): NftSet {
  const address = addressType(family)
  return makeSet(name, [address], { data: [address, 'inet_service'], dynamic: true, size: AFFINITY_SIZE })
}

/** Clients that one service port remembers at most: what kube-proxy allows for each endpoint. */
const AFFINITY_SIZE = 65535

function buildSchema(family: Family): Schema {
  const guards = guardSchema(family)
  const address = addressType(family)
  const service = serviceKey(family)
  const nodePort = NODE_PORT_KEY
  const endpoint: FieldType[] = [address, 'inet_service']
  const verdict = 'verdict'
  return {
    clusterIps: guards.clusterIps,
    nodePortIps: guards.nodePortIps,
    podCidrs: guards.podCidrs,
    serviceCidrs: guards.serviceCidrs,
    hairpin: makeSet(SETS.hairpin, [address, address, 'inet_proto', 'inet_service'], {
      comment: 'Endpoints of this node that may reach themselves',
    }),
    firewallIps: guards.firewallIps,
    services: makeSet(SETS.services, service, { comment: 'ClusterIP, ExternalIP and LoadBalancer IP traffic' }),
    specialServices: makeSet(SETS.specialServices, service, { comment: 'Those that need more than a choice' }),
    localServices: makeSet(SETS.localServices, service, { comment: 'Frontends with externalTrafficPolicy Local' }),
    masqueradeServices: makeSet(SETS.masqueradeServices, service, {
      comment: 'Frontends with externalTrafficPolicy Cluster',
    }),
    unservedServices: guards.unservedServices,
    rejectServices: guards.rejectServices,
    endpoints: makeSet(SETS.endpoints, [...service, 'integer'], { data: endpoint }),
    localEndpoints: makeSet(SETS.localEndpoints, [...service, 'integer'], { data: endpoint }),
    stickServices: makeSet(SETS.stickServices, service, { data: verdict }),
    stickLocalServices: makeSet(SETS.stickLocalServices, service, { data: verdict }),
    nodePorts: makeSet(SETS.nodePorts, nodePort, { comment: 'NodePort traffic' }),
    specialNodePorts: makeSet(SETS.specialNodePorts, nodePort, { comment: 'Those that need more than a choice' }),
    localNodePorts: makeSet(SETS.localNodePorts, nodePort, { comment: 'NodePorts with externalTrafficPolicy Local' }),
    unservedNodePorts: guards.unservedNodePorts,
    rejectNodePorts: guards.rejectNodePorts,
    nodePortEndpoints: makeSet(SETS.nodePortEndpoints, [...nodePort, 'integer'], { data: endpoint }),
    localNodePortEndpoints: makeSet(SETS.localNodePortEndpoints, [...nodePort, 'integer'], { data: endpoint }),
    stickNodePorts: makeSet(SETS.stickNodePorts, nodePort, { data: verdict }),
    stickLocalNodePorts: makeSet(SETS.stickLocalNodePorts, nodePort, { data: verdict }),
    refusedLocalhost: makeSet(SETS.refusedLocalhost, nodePort, { comment: 'NodePorts that are refused on localhost' }),
  }
}
