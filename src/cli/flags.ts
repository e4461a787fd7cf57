// Every flag of today's kube-proxy. The ones of older versions are in old-flags.ts.

import { describeFeatureGates } from '../config/feature-gates.ts'
import { blockOf } from '../config/modes.ts'
import { flag, type FlagSpec, inGroup } from './flag-spec.ts'
import { oldFlags } from './old-flags.ts'

const sync = "How often everything is checked again and cleaned up (e.g. '5s', '2h22m'). Must be greater than 0."
const minSync = 'The least time between two updates of the kernel. 0: every change is applied at once.'

const program = inGroup('Program', [
  flag({ name: 'help', short: 'h', kind: 'bool', help: 'Print this text.' }),
  flag({
    name: 'version',
    kind: 'version',
    default: 'false',
    help: 'Print the version; raw prints all that is known about it; vX.Y.Z sets the version that is reported.',
  }),
  flag({
    name: 'config',
    kind: 'string',
    help: 'Path of a configuration file. It replaces all flags that set a configuration field, except --hostname-override and those under Logging. Changes of the file are applied while the program runs.',
  }),
  flag({
    name: 'write-config-to',
    kind: 'string',
    help: 'Write the configuration that results from the flags to this file and exit.',
  }),
  flag({ name: 'cleanup', kind: 'bool', help: 'Remove all rules that are ours and exit.' }),
  flag({
    name: 'cleanup-leftovers',
    kind: 'bool',
    help: 'On a node that kube-proxy has taken back: remove what it does not and exit. --proxy-mode or --config says how it runs.',
  }),
  flag({
    name: 'init-only',
    kind: 'bool',
    help: 'Do what needs full root privileges and exit. After that CAP_NET_ADMIN is enough to run.',
  }),
  flag({
    name: 'feature-gates',
    kind: 'bools',
    field: 'featureGates',
    errorPaths: ['featureGates'],
    help: `Turn features on or off. Those that matter here:\n${describeFeatureGates().join('\n')}`,
  }),
])

const api = inGroup('API server', [
  flag({
    name: 'kubeconfig',
    kind: 'string',
    field: 'clientConnection.kubeconfig',
    help: 'Path of the kubeconfig file. Without it and --master: the configuration that a pod finds in its cluster.',
  }),
  flag({
    name: 'master',
    kind: 'string',
    help: 'The URL of the API server, whatever the kubeconfig says.',
  }),
  flag({
    name: 'manifests',
    kind: 'string',
    help: 'A folder of YAML or JSON files, or one file, in place of an API server: Services, EndpointSlices or Endpoints, and the Node if it matters. Changes of the files are applied while the program runs. (Not a flag of kube-proxy.)',
  }),
  flag({
    name: 'kube-api-content-type',
    kind: 'string',
    field: 'clientConnection.contentType',
    help: 'The content type of requests.',
  }),
  flag({
    name: 'kube-api-qps',
    kind: 'float',
    field: 'clientConnection.qps',
    help: 'Requests per second, on average.',
  }),
  flag({
    name: 'kube-api-burst',
    kind: 'int32',
    field: 'clientConnection.burst',
    help: 'Requests that may be sent at once beyond --kube-api-qps.',
  }),
  flag({
    name: 'config-sync-period',
    kind: 'duration',
    field: 'configSyncPeriodMs',
    help: 'How often everything known from the API server is gone over again. Must be greater than 0.',
  }),
])

const node = inGroup('Node and servers', [
  flag({
    name: 'hostname-override',
    kind: 'string',
    withConfig: 'outranks',
    help: 'The name of the Node that this proxy runs on. Empty: the host name.',
    apply: (draft, value) => {
      if (value === '') return
      const name = value.trim().toLowerCase()
      if (name === '') throw new RangeError('must not be blank')
      draft.hostnameOverride = name
    },
  }),
  flag({
    name: 'bind-address',
    kind: 'ip',
    field: 'bindAddress',
    help: "Overrides the proxy's idea of the node's primary IP. Nothing is bound to it.",
  }),
  flag({
    name: 'healthz-bind-address',
    kind: 'ipPort',
    field: 'healthzBindAddress',
    help: 'Where the health server listens.',
  }),
  flag({
    name: 'metrics-bind-address',
    kind: 'ipPort',
    field: 'metricsBindAddress',
    help: 'Where the metrics server listens.',
  }),
  flag({
    name: 'traffic-metrics',
    kind: 'int32',
    field: 'trafficMetrics',
    help: 'Show connections, packets and bytes of so many service ports as metrics, those that had traffic first, and of the rest as "other". 0: the kernel counts nothing. What it costs: docs/guides/top.md. (Not a flag of kube-proxy.)',
  }),
  flag({
    name: 'bind-address-hard-fail',
    kind: 'bool',
    field: 'bindAddressHardFail',
    help: 'End the program when a server cannot bind its port, instead of trying again.',
  }),
  flag({
    name: 'control-socket',
    kind: 'string',
    help: 'The unix socket over which root can ask this proxy what it knows and does. Empty: /run/kube-proxy-ts/net-N.sock, where N is the number of its network namespace; none: no socket. (Not a flag of kube-proxy.)',
  }),
  flag({
    name: 'flow-log',
    kind: 'flowLog',
    help: 'Log the connections through Services, each when it ends: as lines of JSON in this file, or as OpenTelemetry logs to a collector, such as otlp(http://127.0.0.1:4318). Empty: no log. What it costs: docs/guides/flows.md. (Not a flag of kube-proxy.)',
  }),
  flag({
    name: 'profiling',
    kind: 'bool',
    field: 'enableProfiling',
    help: 'Serve profiles under /debug/pprof on the metrics port.',
  }),
  flag({
    name: 'show-hidden-metrics-for-version',
    kind: 'string',
    field: 'showHiddenMetricsForVersion',
    help: 'Show metrics that were hidden since this version. Only the previous minor version is allowed, e.g. 1.36.',
  }),
  flag({
    name: 'oom-score-adj',
    kind: 'int32',
    field: 'oomScoreAdj',
    help: 'The oom_score_adj of this process, from -1000 to 1000.',
  }),
])

const mode = inGroup('Proxy mode', [
  flag({
    name: 'strict-proxy-mode',
    kind: 'bool',
    help: 'End with an error when this machine cannot run the chosen mode, instead of falling back: ipvs to iptables, iptables to nftables. (Not a flag of kube-proxy.)',
  }),
  flag({
    name: 'userspace-fallback',
    kind: 'bool',
    help: 'Fall back from iptables to userspace instead of nftables, as old versions of kube-proxy did. The userspace mode goes around network policies. --strict-proxy-mode outranks it. (Not a flag of kube-proxy.)',
  }),
  flag({
    name: 'proxy-mode',
    kind: 'string',
    field: 'mode',
    help: 'How services are made. Empty: iptables, as in kube-proxy.',
  }),
  flag({
    name: 'masquerade-all',
    kind: 'bool',
    field: 'masqueradeAll',
    help: 'Masquerade all traffic sent to cluster IPs. Some CNI plugins need it.',
  }),
  flag({
    name: 'nodeport-addresses',
    kind: 'strings',
    field: 'nodePortAddresses',
    help: "Where node ports are served: CIDRs, or the words 'primary' (the Node's own addresses), 'localhost', 'all'. Empty: primary in nftables mode, all in the others.",
  }),
  flag({
    name: 'connect-retry',
    kind: 'boolOrAnnotated',
    field: 'connectRetry',
    help: 'Give a client another endpoint when the one it got refuses its connection, says nothing or is gone (TCP). For no Service (false), for those with the annotation service.kube-proxy-ts.io/connect-retry: "on" (annotated), or for all but those with "off" (true). (Not a flag of kube-proxy.)',
  }),
  flag({
    name: 'choose-at-connect',
    kind: 'string',
    field: 'chooseAtConnect',
    help: 'Let processes of a cgroup choose the endpoint of a cluster IP when they connect, so that none of their packets has to be translated (TCP; modes nftables and iptables): "pods", or the folder of a cgroup. Empty: none. (Not a flag of kube-proxy.)',
  }),
])

const pods = inGroup('Traffic from pods', [
  flag({
    name: 'detect-local-mode',
    kind: 'string',
    field: 'detectLocalMode',
    help: 'How traffic from pods of this node is recognised: ClusterCIDR, NodeCIDR, BridgeInterface or InterfaceNamePrefix. Empty: ClusterCIDR.',
  }),
  flag({
    name: 'cluster-cidr',
    kind: 'string',
    errorPaths: ['clusterCIDR'],
    help: 'The range of pod addresses, or an IPv4 and an IPv6 range separated by a comma.',
    apply: (draft, value) => {
      draft.detectLocal.clusterCIDRs = value === '' ? [] : value.split(',')
    },
  }),
  flag({
    name: 'pod-bridge-interface',
    kind: 'string',
    field: 'detectLocal.bridgeInterface',
    help: 'With BridgeInterface: traffic from this bridge is local.',
  }),
  flag({
    name: 'pod-interface-name-prefix',
    kind: 'string',
    field: 'detectLocal.interfaceNamePrefix',
    help: 'With InterfaceNamePrefix: traffic from interfaces whose name begins so is local.',
  }),
])

const conntrack = inGroup('Connection tracking', [
  flag({
    name: 'conntrack-max-per-core',
    kind: 'int32',
    field: 'conntrack.maxPerCore',
    help: 'Tracked connections per CPU core. 0: leave the limit as it is and ignore --conntrack-min.',
  }),
  flag({
    name: 'conntrack-min',
    kind: 'int32',
    field: 'conntrack.min',
    help: 'Tracked connections at least, whatever --conntrack-max-per-core gives.',
  }),
  flag({
    name: 'conntrack-tcp-timeout-established',
    kind: 'duration',
    field: 'conntrack.tcpEstablishedTimeoutMs',
    help: 'How long idle TCP connections are tracked. 0: leave as it is.',
  }),
  flag({
    name: 'conntrack-tcp-timeout-close-wait',
    kind: 'duration',
    field: 'conntrack.tcpCloseWaitTimeoutMs',
    help: 'How long connections in CLOSE_WAIT are tracked. 0: leave as it is.',
  }),
  flag({
    name: 'conntrack-tcp-be-liberal',
    kind: 'bool',
    field: 'conntrack.tcpBeLiberal',
    help: 'Do not call packets outside the TCP window INVALID.',
  }),
  flag({
    name: 'conntrack-udp-timeout',
    kind: 'duration',
    field: 'conntrack.udpTimeoutMs',
    help: 'How long unanswered UDP is tracked. 0: leave as it is.',
  }),
  flag({
    name: 'conntrack-udp-timeout-stream',
    kind: 'duration',
    field: 'conntrack.udpStreamTimeoutMs',
    help: 'How long answered UDP is tracked. 0: leave as it is.',
  }),
])

const iptables = inGroup('iptables mode', [
  flag({
    name: 'iptables-masquerade-bit',
    kind: 'int32',
    field: 'iptables.masqueradeBit',
    help: 'The bit of the packet mark that asks for masquerading, from 0 to 31. For the modes iptables and ipvs.',
  }),
  flag({
    name: 'iptables-localhost-nodeports',
    kind: 'bool',
    field: 'iptables.localhostNodePorts',
    help: 'Serve node ports on 127.0.0.1 too (IPv4 only).',
  }),
  flag({
    name: 'iptables-sync-period',
    kind: 'duration',
    default: 30_000,
    errorPaths: ['iptables.syncPeriod', 'nftables.syncPeriod'],
    help: `${sync} For every mode but ipvs.`,
    apply: (draft, value) => {
      if (!hasPeriodsOfIpvs(draft)) draft.syncPeriodMs = value
    },
  }),
  flag({
    name: 'iptables-min-sync-period',
    kind: 'duration',
    default: 1000,
    errorPaths: ['iptables.minSyncPeriod', 'nftables.minSyncPeriod'],
    help: `${minSync} For every mode but ipvs.`,
    apply: (draft, value) => {
      if (!hasPeriodsOfIpvs(draft)) draft.minSyncPeriodMs = value
    },
  }),
])

const ipvs = inGroup('ipvs mode', [
  flag({
    name: 'ipvs-sync-period',
    kind: 'duration',
    default: 30_000,
    errorPaths: ['ipvs.syncPeriod'],
    help: sync,
    apply: (draft, value) => {
      if (hasPeriodsOfIpvs(draft)) draft.syncPeriodMs = value
    },
  }),
  flag({
    name: 'ipvs-min-sync-period',
    kind: 'duration',
    default: 1000,
    errorPaths: ['ipvs.minSyncPeriod'],
    help: minSync,
    apply: (draft, value) => {
      if (hasPeriodsOfIpvs(draft)) draft.minSyncPeriodMs = value
    },
  }),
  flag({
    name: 'ipvs-scheduler',
    kind: 'string',
    field: 'ipvs.scheduler',
    help: 'The IPVS scheduler. Empty: rr.',
  }),
  flag({
    name: 'ipvs-exclude-cidrs',
    kind: 'strings',
    field: 'ipvs.excludeCIDRs',
    help: 'Virtual servers in these ranges are left alone.',
  }),
  flag({
    name: 'ipvs-strict-arp',
    kind: 'bool',
    field: 'ipvs.strictARP',
    help: 'Set arp_ignore to 1 and arp_announce to 2.',
  }),
  flag({
    name: 'ipvs-tcp-timeout',
    kind: 'duration',
    field: 'ipvs.tcpTimeoutMs',
    help: 'Timeout of idle TCP connections. 0: leave as it is.',
  }),
  flag({
    name: 'ipvs-tcpfin-timeout',
    kind: 'duration',
    field: 'ipvs.tcpFinTimeoutMs',
    help: 'Timeout of TCP connections after a FIN. 0: leave as it is.',
  }),
  flag({
    name: 'ipvs-udp-timeout',
    kind: 'duration',
    field: 'ipvs.udpTimeoutMs',
    help: 'Timeout of UDP. 0: leave as it is.',
  }),
])

const logging = inGroup('Logging', [
  flag({
    name: 'v',
    short: 'v',
    kind: 'level',
    field: 'logging.verbosity',
    withConfig: 'outranks',
    help: 'How much is logged. 0: only what matters most. Errors are always logged.',
  }),
  flag({
    name: 'vmodule',
    kind: 'vmodule',
    withConfig: 'outranks',
    errorPaths: ['logging.vmodule'],
    help: 'A verbosity of their own for files whose name matches a pattern. Text format only.',
    // The command line comes first, and the first pattern that matches wins.
    apply: (draft, value) => {
      draft.logging.vmodule = [...value, ...draft.logging.vmodule]
    },
  }),
  flag({
    name: 'logging-format',
    kind: 'string',
    field: 'logging.format',
    withConfig: 'outranks',
    help: 'The form of log lines: text or json.',
  }),
  flag({
    name: 'log-flush-frequency',
    kind: 'duration',
    field: 'logging.flushFrequencyMs',
    withConfig: 'outranks',
    help: 'The longest that a buffered log line may wait.',
  }),
  ...(['text', 'json'] as const).flatMap((format) => [
    flag({
      name: `log-${format}-split-stream`,
      kind: 'bool',
      field: `logging.options.${format}.splitStream`,
      withConfig: 'outranks',
      help: `In ${format} format: errors to stderr, the rest to stdout. Needs the gate LoggingAlphaOptions.`,
    }),
    flag({
      name: `log-${format}-info-buffer-size`,
      kind: 'quantity',
      field: `logging.options.${format}.infoBufferSize`,
      withConfig: 'outranks',
      help: `In ${format} format with split streams: how many bytes of info messages may wait. Needs LoggingAlphaOptions.`,
    }),
  ]),
])

/** Every flag that is understood. */
export const allFlags: readonly FlagSpec[] = [
  ...program,
  ...api,
  ...node,
  ...mode,
  ...pods,
  ...conntrack,
  ...iptables,
  ...ipvs,
  ...logging,
  ...oldFlags,
]

/** Whether --ipvs-sync-period and --ipvs-min-sync-period are meant, and not those of iptables. */
export function hasPeriodsOfIpvs({ mode }: { readonly mode: string }): boolean {
  return blockOf(mode).periods === 'ipvs'
}
