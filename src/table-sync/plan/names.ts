// The sets and chains that protect the frontends. They are the same in every mode with an nftables table.

export const GUARD_SETS = {
  clusterIps: 'cluster-ips',
  nodePortIps: 'nodeport-ips',
  podCidrs: 'pod-cidrs',
  serviceCidrs: 'service-cidrs',
  firewallIps: 'firewall-frontends',
  /** Frontends without an endpoint for some of their clients; `reject`: those whose clients get an ICMP error or a reset. */
  unservedServices: 'no-endpoint-services-all',
  rejectServices: 'no-endpoint-services-reject',
  unservedNodePorts: 'no-endpoint-nodeports-all',
  rejectNodePorts: 'no-endpoint-nodeports-reject',
} as const

export const GUARD_CHAINS = {
  natPrerouting: 'nat-prerouting',
  natOutput: 'nat-output',
  filterInput: 'filter-input',
  filterForward: 'filter-forward',
  filterOutput: 'filter-output',
  firewallCheck: 'firewall-check',
  firewallSources: 'firewall-sources',
  incomingChecks: 'incoming-checks',
  outgoingChecks: 'outgoing-checks',
  serviceEndpointsCheck: 'service-endpoints-check',
  refuseService: 'refuse-service',
  nodePortEndpointsCheck: 'nodeport-endpoints-check',
  refuseNodePort: 'refuse-nodeport',
  clusterIpsCheck: 'cluster-ips-check',
} as const
