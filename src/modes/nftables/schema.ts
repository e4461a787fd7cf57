// The sets and maps of our table: what they are keyed by and what they say.

import type { Family } from '../../lib/ip.ts'
import type { FieldType, NftSet } from '../../state/nftables/types.ts'
import { SETS } from './names.ts'

type SetOptions = Partial<Pick<NftSet, 'data' | 'interval' | 'dynamic' | 'size' | 'comment'>>

export type Schema = Readonly<Record<keyof typeof SETS, NftSet>>

/** What varies with services is an element of one of these. */
export function schemaFor(family: Family): Schema {
  return family === 4 ? SCHEMA4 : SCHEMA6
}

export function makeSet(name: string, key: readonly FieldType[], options: SetOptions = {}): NftSet {
  const defaults = {
    data: undefined,
    interval: false,
    dynamic: false,
    timeoutMs: undefined,
    size: undefined,
    comment: undefined,
  }
  return { name, key, ...defaults, ...options }
}

export function addressType(family: Family): FieldType {
  return family === 4 ? 'ipv4_addr' : 'ipv6_addr'
}

/** Keys: a frontend with an address, a node port. */
export function serviceKey(family: Family): readonly FieldType[] {
  return [addressType(family), 'inet_proto', 'inet_service']
}
export const NODE_PORT_KEY: readonly FieldType[] = ['inet_proto', 'inet_service']

/** A map from clients to their endpoints, filled by packets. */
export function affinityMap(family: Family, name: string): NftSet {
  const address = addressType(family)
  return makeSet(name, [address], { data: [address, 'inet_service'], dynamic: true, size: AFFINITY_SIZE })
}

/** Clients that one service port remembers at most: what kube-proxy allows for each endpoint. */
const AFFINITY_SIZE = 65535

function buildSchema(family: Family): Schema {
  const address = addressType(family)
  const service = serviceKey(family)
  const nodePort = NODE_PORT_KEY
  const endpoint: FieldType[] = [address, 'inet_service']
  const verdict = 'verdict'
  return {
    clusterIps: makeSet(SETS.clusterIps, [address], { comment: 'Active ClusterIPs' }),
    nodePortIps: makeSet(SETS.nodePortIps, [address], { comment: 'IPs that accept NodePort traffic' }),
    podCidrs: makeSet(SETS.podCidrs, [address], { interval: true, comment: 'Sources that are pods' }),
    serviceCidrs: makeSet(SETS.serviceCidrs, [address], { interval: true, comment: 'Where ClusterIPs are taken from' }),
    hairpin: makeSet(SETS.hairpin, [address, address, 'inet_proto', 'inet_service'], {
      comment: 'Endpoints of this node that may reach themselves',
    }),
    firewallIps: makeSet(SETS.firewallIps, service, { comment: 'Frontends with loadBalancerSourceRanges' }),
    firewallAllowed: makeSet(SETS.firewallAllowed, [...service, address], {
      interval: true,
      comment: 'Sources that loadBalancerSourceRanges allow',
    }),
    services: makeSet(SETS.services, service, { comment: 'ClusterIP, ExternalIP and LoadBalancer IP traffic' }),
    localServices: makeSet(SETS.localServices, service, { comment: 'Frontends with externalTrafficPolicy Local' }),
    masqueradeServices: makeSet(SETS.masqueradeServices, service, {
      comment: 'Frontends with externalTrafficPolicy Cluster',
    }),
    rejectServices: makeSet(SETS.rejectServices, service, { comment: 'Frontends without endpoints' }),
    dropServices: makeSet(SETS.dropServices, service, { comment: 'Frontends without local endpoints' }),
    endpoints: makeSet(SETS.endpoints, [...service, 'integer'], { data: endpoint }),
    localEndpoints: makeSet(SETS.localEndpoints, [...service, 'integer'], { data: endpoint }),
    stickServices: makeSet(SETS.stickServices, service, { data: verdict }),
    stickLocalServices: makeSet(SETS.stickLocalServices, service, { data: verdict }),
    rememberServices: makeSet(SETS.rememberServices, service, { data: verdict }),
    nodePorts: makeSet(SETS.nodePorts, nodePort, { comment: 'NodePort traffic' }),
    localNodePorts: makeSet(SETS.localNodePorts, nodePort, { comment: 'NodePorts with externalTrafficPolicy Local' }),
    masqueradeNodePorts: makeSet(SETS.masqueradeNodePorts, nodePort, {
      comment: 'NodePorts with externalTrafficPolicy Cluster',
    }),
    rejectNodePorts: makeSet(SETS.rejectNodePorts, nodePort, { comment: 'NodePorts without endpoints' }),
    dropNodePorts: makeSet(SETS.dropNodePorts, nodePort, { comment: 'NodePorts without local endpoints' }),
    nodePortEndpoints: makeSet(SETS.nodePortEndpoints, [...nodePort, 'integer'], { data: endpoint }),
    localNodePortEndpoints: makeSet(SETS.localNodePortEndpoints, [...nodePort, 'integer'], { data: endpoint }),
    stickNodePorts: makeSet(SETS.stickNodePorts, nodePort, { data: verdict }),
    stickLocalNodePorts: makeSet(SETS.stickLocalNodePorts, nodePort, { data: verdict }),
    rememberNodePorts: makeSet(SETS.rememberNodePorts, nodePort, { data: verdict }),
  }
}

const SCHEMA4 = buildSchema(4)
const SCHEMA6 = buildSchema(6)
