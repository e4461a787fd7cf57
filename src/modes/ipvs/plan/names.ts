// The names of everything that the mode puts into the kernel.

import { GUARD_CHAINS, GUARD_SETS } from '../../../table-sync/plan/names.ts'

/** The link that has the services' addresses, as kube-proxy calls it. */
export const LINK = 'kube-ipvs0'

/** The table with the rules around IPVS. Not the nftables mode's: changing modes never mixes the two. */
export const TABLE = 'kube-proxy-ipvs'

export const SETS = {
  ...GUARD_SETS,
  frontendIps: 'service-ips',
  nodeIps: 'node-ips',
  hairpin: 'hairpin-connections',
  healthCheckPorts: 'health-check-ports',
  services: 'served-ips',
  masqueradeServices: 'served-ips-masquerade',
  localServices: 'served-ips-local',
  serviceEndpoints: 'service-short-circuit-endpoints',
  masqueradeNodePorts: 'served-nodeports-masquerade',
  localNodePorts: 'served-nodeports-local',
  nodePortEndpoints: 'nodeport-short-circuit-endpoints',
} as const

export const CHAINS = {
  ...GUARD_CHAINS,
  filterOutputPreIpvs: 'filter-output-pre-ipvs',
  filterPreroutingPreDnat: 'filter-prerouting-pre-dnat',
  filterOutputPreDnat: 'filter-output-pre-dnat',
  natPostrouting: 'nat-postrouting',
  services: 'services',
  localServices: 'services-local',
  serviceShortCircuit: 'services-short-circuit',
  nodePorts: 'nodeports',
  localNodePorts: 'nodeports-local',
  nodePortShortCircuit: 'nodeports-short-circuit',
  hostPortGuard: 'host-port-guard',
  masquerading: 'masquerading',
} as const
