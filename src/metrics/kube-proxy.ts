// kube-proxy's own metrics, as of 1.37: pkg/proxy/metrics/metrics.go. The label ip_family is "IPv4" or "IPv6".

import { counter, gauge, histogram, lookedUp, type Printable } from './registry.ts'

const alpha = { stability: 'ALPHA' } as const
const perFamily = { ...alpha, labels: ['ip_family'] } as const

/** 1 ms to 16 s. */
const syncBuckets = Array.from({ length: 15 }, (_, index) => 0.001 * 2 ** index)

/** Each second to a minute, then coarser up to five: a change's way through the whole cluster. */
const programmingBuckets = [
  ...linearBuckets(0.25, 0.25, 2),
  ...linearBuckets(1, 1, 59),
  ...linearBuckets(60, 5, 12),
  ...linearBuckets(120, 30, 7),
]

/** Shown in every mode. */
export function coreMetrics() {
  return {
    syncDuration: histogram({
      ...perFamily,
      name: 'kubeproxy_sync_proxy_rules_duration_seconds',
      help: 'SyncProxyRules latency in seconds',
      buckets: syncBuckets,
    }),
    lastSync: gauge({
      ...perFamily,
      name: 'kubeproxy_sync_proxy_rules_last_timestamp_seconds',
      help: 'The last time proxy rules were successfully synced',
    }),
    lastQueued: gauge({
      ...perFamily,
      name: 'kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds',
      help: 'The last time a sync of proxy rules was queued',
    }),
    networkProgrammingDuration: histogram({
      ...perFamily,
      name: 'kubeproxy_network_programming_duration_seconds',
      help: 'In Cluster Network Programming Latency in seconds',
      buckets: programmingBuckets,
    }),
    noLocalEndpoints: gauge({
      ...alpha,
      name: 'kubeproxy_sync_proxy_rules_no_local_endpoints_total',
      help: 'Number of services with a Local traffic policy and no endpoints',
      labels: ['traffic_policy', 'ip_family'],
    }),
    endpointChangesPending: gauge({
      ...alpha,
      name: 'kubeproxy_sync_proxy_rules_endpoint_changes_pending',
      help: 'Pending proxy rules Endpoint changes',
      labels: [],
    }),
    endpointChanges: counter({
      ...alpha,
      name: 'kubeproxy_sync_proxy_rules_endpoint_changes_total',
      help: 'Cumulative proxy rules Endpoint changes',
      labels: [],
    }),
    serviceChangesPending: gauge({
      ...alpha,
      name: 'kubeproxy_sync_proxy_rules_service_changes_pending',
      help: 'Pending proxy rules Service changes',
      labels: [],
    }),
    serviceChanges: counter({
      ...alpha,
      name: 'kubeproxy_sync_proxy_rules_service_changes_total',
      help: 'Cumulative proxy rules Service changes',
      labels: [],
    }),
    healthz: counter({
      ...alpha,
      name: 'kubeproxy_proxy_healthz_total',
      help: 'Cumulative proxy healthz HTTP status',
      labels: ['code'],
    }),
    livez: counter({
      ...alpha,
      name: 'kubeproxy_proxy_livez_total',
      help: 'Cumulative proxy livez HTTP status',
      labels: ['code'],
    }),
  }
}

/** Shown in every mode of Linux. */
export function conntrackMetrics() {
  return {
    conntrackDuration: histogram({
      ...perFamily,
      name: 'kubeproxy_conntrack_reconciler_sync_duration_seconds',
      help: 'ReconcileConntrackFlowsLatency latency in seconds',
      buckets: syncBuckets,
    }),
    conntrackDeleted: counter({
      ...perFamily,
      name: 'kubeproxy_conntrack_reconciler_deleted_entries_total',
      help: 'Cumulative conntrack flows deleted by conntrack reconciler',
    }),
  }
}

/** Shown in the modes that distinguish full from partial syncs: iptables and nftables. */
export function partialSyncMetrics() {
  return {
    syncFullDuration: histogram({
      ...perFamily,
      name: 'kubeproxy_sync_full_proxy_rules_duration_seconds',
      help: 'SyncProxyRules latency in seconds for full resyncs',
      buckets: syncBuckets,
    }),
    syncPartialDuration: histogram({
      ...perFamily,
      name: 'kubeproxy_sync_partial_proxy_rules_duration_seconds',
      help: 'SyncProxyRules latency in seconds for partial resyncs',
      buckets: syncBuckets,
    }),
  }
}

/** Of the iptables mode. */
export function iptablesMetrics() {
  return {
    iptablesRestoreFailures: counter({
      ...perFamily,
      name: 'kubeproxy_sync_proxy_rules_iptables_restore_failures_total',
      help: 'Cumulative proxy iptables restore failures',
    }),
    iptablesPartialRestoreFailures: counter({
      ...perFamily,
      name: 'kubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total',
      help: 'Cumulative proxy iptables partial restore failures',
    }),
    iptablesRules: gauge({
      ...alpha,
      name: 'kubeproxy_sync_proxy_rules_iptables_total',
      help: 'Total number of iptables rules owned by kube-proxy',
      labels: ['table', 'ip_family'],
    }),
    iptablesRulesWritten: gauge({
      ...alpha,
      name: 'kubeproxy_sync_proxy_rules_iptables_last',
      help: 'Number of iptables rules written by kube-proxy in last sync',
      labels: ['table', 'ip_family'],
    }),
  }
}

/** Of the nftables mode. */
export function nftablesMetrics() {
  return {
    nftablesSyncFailures: counter({
      ...perFamily,
      name: 'kubeproxy_sync_proxy_rules_nftables_sync_failures_total',
      help: 'Cumulative proxy nftables sync failures',
    }),
    nftablesCleanupFailures: counter({
      ...perFamily,
      name: 'kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total',
      help: 'Cumulative proxy nftables cleanup failures',
    }),
  }
}

/** Packets that the iptables mode counts with nfacct objects, read by the objects' names. */
export function nfacctMetrics(decodePackets: (object: string) => number): Printable[] {
  const packets = (name: string, help: string, object: string): Printable =>
    lookedUp('counter', { ...alpha, name, help, labels: [] }, () => [[[], decodePackets(object)]])
  return [
    packets(
      'kubeproxy_iptables_ct_state_invalid_dropped_packets_total',
      'packets dropped by iptables to work around conntrack problems',
      'ct_state_invalid_dropped_pkts',
    ),
    packets(
      'kubeproxy_iptables_localhost_nodeports_accepted_packets_total',
      'Number of packets accepted on nodeports of loopback interface',
      'localhost_nps_accepted_pkts',
    ),
  ]
}

/** Where node ports on 127.0.0.1 and ::1 are looked after: behind a feature gate of the nftables mode. */
export function localhostMetrics(read: {
  readonly listeners: () => Iterable<readonly [labels: readonly [ipFamily: string], value: number]>
  readonly rejected: () => Iterable<readonly [labels: readonly [ipFamily: string, protocol: string], value: number]>
}) {
  return {
    listeners: lookedUp(
      'gauge',
      {
        ...perFamily,
        name: 'kubeproxy_nftables_localhost_nodeport_listeners',
        help: 'Number of active localhost NodePort userspace proxy listeners.',
      },
      read.listeners,
    ),
    failures: counter({
      ...perFamily,
      name: 'kubeproxy_nftables_localhost_nodeport_listener_creation_failures_total',
      help: 'Number of localhost NodePort userspace proxy listener creation failures.',
    }),
    rejected: lookedUp(
      'counter',
      {
        ...alpha,
        name: 'kubeproxy_nftables_localhost_nodeport_rejected_packets_total',
        help: 'Number of packets rejected on localhost NodePorts. UDP and SCTP are always rejected; TCP is rejected when the localhost NodePort proxy is not running',
        labels: ['ip_family', 'protocol'],
      },
      read.rejected,
    ),
  }
}

function linearBuckets(start: number, width: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => start + index * width)
}
