// The names of everything that the mode puts into the kernel.

/** The link that has the services' addresses, as kube-proxy calls it. */
export const LINK = 'kube-ipvs0'

/** The table with the rules around IPVS. Not the nftables mode's: changing modes never mixes the two. */
export const TABLE = 'kube-proxy-ipvs'

export const SETS = {
  clusterIps: 'cluster-ips',
  frontendIps: 'service-ips',
  nodeIps: 'node-ips',
  nodePortIps: 'nodeport-ips',
  podCidrs: 'pod-cidrs',
  serviceCidrs: 'service-cidrs',
  hairpin: 'hairpin-connections',
  healthCheckPorts: 'health-check-ports',
  firewallIps: 'firewall-ips',
  firewallAllowed: 'firewall-allowed',
  services: 'services',
  masqueradeServices: 'services-masquerade',
  localServices: 'services-local',
  rejectServices: 'services-reject',
  dropServices: 'services-drop',
  serviceEndpoints: 'services-short-circuit-endpoints',
  masqueradeNodePorts: 'nodeports-masquerade',
  localNodePorts: 'nodeports-local',
  rejectNodePorts: 'nodeports-reject',
  dropNodePorts: 'nodeports-drop',
  nodePortEndpoints: 'nodeports-short-circuit-endpoints',
} as const

export const CHAINS = {
  filterPreroutingEarly: 'filter-prerouting-early',
  filterOutputEarly: 'filter-output-early',
  filterOutputPreIpvs: 'filter-output-pre-ipvs',
  filterInput: 'filter-input',
  filterForward: 'filter-forward',
  filterOutput: 'filter-output',
  natPrerouting: 'nat-prerouting',
  natOutput: 'nat-output',
  natPostrouting: 'nat-postrouting',
  firewallCheck: 'firewall-check',
  firewallSources: 'firewall-sources',
  services: 'mark-services',
  localServices: 'mark-services-local',
  serviceShortCircuit: 'services-short-circuit',
  nodePorts: 'mark-nodeports',
  localNodePorts: 'mark-nodeports-local',
  nodePortShortCircuit: 'nodeports-short-circuit',
  endpointsCheck: 'endpoints-check',
  hostPortGuard: 'host-port-guard',
  clusterIpsCheck: 'cluster-ips-check',
  masquerading: 'masquerading',
} as const

/** The set of the frontends whose short circuit has `count` endpoints to choose from. */
export function countSetName(chain: string, count: number): string {
  return `${chain}-${count}`
}
