// The names of everything in our tables. What operators know from kube-proxy keeps its name and meaning.
//
// What is not the same must not have kube-proxy's name: when an operator goes back to it, it adds to the table that it finds, and
// a set where it has a map is an error from which it does not recover.

import type { ServicePortView } from '../../../model/types.ts'
import type { TransportProtocol } from '../../../nftables/fields.ts'
import { GUARD_CHAINS, GUARD_SETS } from '../../../table-sync/plan/names.ts'
import { servicePortBaseName } from '../../../table-sync/plan/service-port-name.ts'

export const TABLE = 'kube-proxy'

export const SETS = {
  ...GUARD_SETS,
  hairpin: 'hairpin-connections',
  /** Frontends by address: served, those of them that need more than a choice, of these the ones with a local list for clients from outside ... */
  services: 'served-ips',
  specialServices: 'served-ips-special',
  localServices: 'served-ips-local',
  masqueradeServices: 'served-ips-masquerade',
  endpoints: 'service-endpoints',
  localEndpoints: 'service-endpoints-local',
  stickServices: 'service-affinity',
  stickLocalServices: 'service-affinity-local',
  /** The same, for node ports. */
  nodePorts: 'served-nodeports',
  specialNodePorts: 'served-nodeports-special',
  localNodePorts: 'served-nodeports-local',
  nodePortEndpoints: 'nodeport-endpoints',
  localNodePortEndpoints: 'nodeport-endpoints-local',
  stickNodePorts: 'nodeport-affinity',
  stickLocalNodePorts: 'nodeport-affinity-local',
  refusedLocalhost: 'refused-localhost-nodeports',
} as const

export const CHAINS = {
  ...GUARD_CHAINS,
  natPostrouting: 'nat-postrouting',
  services: 'services',
  servedServices: 'services-served',
  specialServices: 'services-special',
  stickyServices: 'services-sticky',
  clusterServices: 'services-cluster',
  localServices: 'services-local',
  pickServices: 'services-pick',
  pickLocalServices: 'services-pick-local',
  nodePorts: 'nodeports',
  servedNodePorts: 'nodeports-served',
  specialNodePorts: 'nodeports-special',
  stickyNodePorts: 'nodeports-sticky',
  clusterNodePorts: 'nodeports-cluster',
  localNodePorts: 'nodeports-local',
  pickNodePorts: 'nodeports-pick',
  pickLocalNodePorts: 'nodeports-pick-local',
  affinityCheck: 'affinity-check',
  recordServices: 'affinity-record-services',
  recordNodePorts: 'affinity-record-nodeports',
  masquerading: 'masquerading',
  refuseLocalhost: 'refuse-localhost-nodeport',
} as const

const RECORD_SETS = { services: 'service-affinity-record', nodePorts: 'nodeport-affinity-record' } as const

/** The frontends of a protocol whose clients are remembered, and by which chain. */
export function recordSetName(frontends: keyof typeof RECORD_SETS, protocol: TransportProtocol): string {
  return `${RECORD_SETS[frontends]}-${protocol.toLowerCase()}`
}

export function isRecordSetName(name: string): boolean {
  return Object.values(RECORD_SETS).some((record) => name.startsWith(`${record}-`))
}

/** The objects of one service port with session affinity; each name is used for a map or for chains. */
export interface AffinityNames {
  /** Maps: client -> endpoint, for the two lists that a service port may have. */
  readonly clusterMap: string
  readonly localMap: string
  /** Chains that send a known client to its endpoint. */
  readonly stickCluster: string
  readonly stickLocal: string
  /** Chains that note the endpoint of a client. */
  readonly recordCluster: string
  readonly recordLocal: string
  /** Decides which of the two notes it, for frontends with externalTrafficPolicy Local. */
  readonly recordExternal: string
}

export function affinityNames(port: ServicePortView): AffinityNames {
  const base = servicePortBaseName(port)
  return {
    clusterMap: `affinity-${base}`,
    localMap: `affinity-local-${base}`,
    stickCluster: `stick-${base}`,
    stickLocal: `stick-local-${base}`,
    recordCluster: `record-${base}`,
    recordLocal: `record-local-${base}`,
    recordExternal: `record-external-${base}`,
  }
}
