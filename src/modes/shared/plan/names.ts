// The sets and chains that are the same in every mode with an nftables table: what protects the frontends.

export const GUARD_SETS = {
  clusterIps: "cluster-ips",
  nodePortIps: "nodeport-ips",
  podCidrs: "pod-cidrs",
  serviceCidrs: "service-cidrs",
  firewallIps: "firewall-frontends",
  firewallAllowedTCP: "firewall-allowed-tcp",
  firewallAllowedUDP: "firewall-allowed-udp",
  firewallAllowedSCTP: "firewall-allowed-sctp",
  rejectServices: "no-endpoint-services-reject",
  dropServices: "no-endpoint-services-drop",
  rejectNodePorts: "no-endpoint-nodeports-reject",
  dropNodePorts: "no-endpoint-nodeports-drop",
} as const;

export const GUARD_CHAINS = {
  filterPreroutingPreDnat: "filter-prerouting-pre-dnat",
  filterOutputPreDnat: "filter-output-pre-dnat",
  filterInput: "filter-input",
  filterForward: "filter-forward",
  filterOutput: "filter-output",
  firewallCheck: "firewall-check",
  firewallSources: "firewall-sources",
  serviceEndpointsCheck: "service-endpoints-check",
  nodePortEndpointsCheck: "nodeport-endpoints-check",
  clusterIpsCheck: "cluster-ips-check",
} as const;
