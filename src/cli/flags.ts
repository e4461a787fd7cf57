// Every flag of today's kube-proxy. The ones of older versions are in old-flags.ts.

import { describeFeatureGates } from '../config/feature-gates.ts'
import { blockOf } from '../config/modes.ts'
import { flag, type FlagSpec } from './flag-spec.ts'
import { oldFlags } from './old-flags.ts'

const sync = "How often everything is checked again and cleaned up (e.g. '5s', '2h22m'). Must be greater than 0."
const minSync = 'The least time between two updates of the kernel. 0: every change is applied at once.'

const program: readonly FlagSpec[] = [
  flag({ name: 'help', short: 'h', kind: 'bool', group: 'Program', help: 'Print this text.' }),
  flag({
    name: 'version',
    kind: 'version',
    default: 'false',
    group: 'Program',
    help: 'Print the version; raw prints all that is known about it; vX.Y.Z sets the version that is reported.',
  }),
  flag({
    name: 'config',
    kind: 'string',
    group: 'Program',
    help: 'Path of a configuration file. It replaces all flags that set a configuration field, except --hostname-override and those under Logging. Changes of the file are applied while the program runs.',
  }),
  flag({
    name: 'write-config-to',
    kind: 'string',
    group: 'Program',
    help: 'Write the configuration that results from the flags to this file and exit.',
  }),
  flag({ name: 'cleanup', kind: 'bool', group: 'Program', help: 'Remove all rules that are ours and exit.' }),
  flag({
    name: 'cleanup-leftovers',
    kind: 'bool',
    group: 'Program',
    help: 'On a node that kube-proxy has taken back: remove what it does not and exit. --proxy-mode or --config says how it runs.',
  }),
  flag({
    name: 'init-only',
    kind: 'bool',
    group: 'Program',
    help: 'Do what needs full root privileges and exit. After that CAP_NET_ADMIN is enough to run.',
  }),
  flag({
    name: 'feature-gates',
    kind: 'bools',
    field: 'featureGates',
    group: 'Program',
    errorPaths: ['featureGates'],
    help: `Turn features on or off. Those that matter here:\n${describeFeatureGates().join('\n')}`,
  }),
]

const api: readonly FlagSpec[] = [
  flag({
    name: 'kubeconfig',
    kind: 'string',
    field: 'clientConnection.kubeconfig',
    group: 'API server',
    help: 'Path of the kubeconfig file. Without it and --master: the configuration that a pod finds in its cluster.',
  }),
  flag({
    name: 'master',
    kind: 'string',
    group: 'API server',
    help: 'The URL of the API server, whatever the kubeconfig says.',
  }),
  flag({
    name: 'manifests',
    kind: 'string',
    group: 'API server',
    help: 'A folder of YAML or JSON files, or one file, in place of an API server: Services, EndpointSlices or Endpoints, and the Node if it matters. Changes of the files are applied while the program runs. (Not a flag of kube-proxy.)',
  }),
  flag({
    name: 'kube-api-content-type',
    kind: 'string',
    field: 'clientConnection.contentType',
    group: 'API server',
    help: 'The content type of requests.',
  }),
  flag({
    name: 'kube-api-qps',
    kind: 'float',
    field: 'clientConnection.qps',
    group: 'API server',
    help: 'Requests per second, on average.',
  }),
  flag({
    name: 'kube-api-burst',
    kind: 'int32',
    field: 'clientConnection.burst',
    group: 'API server',
    help: 'Requests that may be sent at once beyond --kube-api-qps.',
  }),
  flag({
    name: 'config-sync-period',
    kind: 'duration',
    field: 'configSyncPeriodMs',
    group: 'API server',
    help: 'How often everything known from the API server is gone over again. Must be greater than 0.',
  }),
]

const node: readonly FlagSpec[] = [
  flag({
    name: 'hostname-override',
    kind: 'string',
    group: 'Node and servers',
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
    group: 'Node and servers',
    help: "Overrides the proxy's idea of the node's primary IP. Nothing is bound to it.",
  }),
  flag({
    name: 'healthz-bind-address',
    kind: 'ipPort',
    field: 'healthzBindAddress',
    group: 'Node and servers',
    help: 'Where the health server listens.',
  }),
  flag({
    name: 'metrics-bind-address',
    kind: 'ipPort',
    field: 'metricsBindAddress',
    group: 'Node and servers',
    help: 'Where the metrics server listens.',
  }),
  flag({
    name: 'traffic-metrics',
    kind: 'int32',
    field: 'trafficMetrics',
    group: 'Node and servers',
    help: 'Show connections, packets and bytes of so many service ports as metrics, those that had traffic first, and of the rest as "other". 0: the kernel counts nothing. What it costs: docs/guides/top.md. (Not a flag of kube-proxy.)',
  }),
  flag({
    name: 'bind-address-hard-fail',
    kind: 'bool',
    field: 'bindAddressHardFail',
    group: 'Node and servers',
    help: 'End the program when a server cannot bind its port, instead of trying again.',
  }),
  flag({
    name: 'control-socket',
    kind: 'string',
    group: 'Node and servers',
    help: 'The unix socket over which root can ask this proxy what it knows and does. Empty: /run/kube-proxy-ts/net-N.sock, where N is the number of its network namespace; none: no socket. (Not a flag of kube-proxy.)',
  }),
  flag({
    name: 'profiling',
    kind: 'bool',
    field: 'enableProfiling',
    group: 'Node and servers',
    help: 'Serve profiles under /debug/pprof on the metrics port.',
  }),
  flag({
    name: 'show-hidden-metrics-for-version',
    kind: 'string',
    field: 'showHiddenMetricsForVersion',
    group: 'Node and servers',
    help: 'Show metrics that were hidden since this version. Only the previous minor version is allowed, e.g. 1.36.',
  }),
  flag({
    name: 'oom-score-adj',
    kind: 'int32',
    field: 'oomScoreAdj',
    group: 'Node and servers',
    help: 'The oom_score_adj of this process, from -1000 to 1000.',
  }),
]

const mode: readonly FlagSpec[] = [
  flag({
    name: 'strict-proxy-mode',
    kind: 'bool',
    group: 'Proxy mode',
    help: 'End with an error when this machine cannot run the chosen mode, instead of falling back: ipvs to iptables, iptables to nftables. (Not a flag of kube-proxy.)',
  }),
  flag({
    name: 'userspace-fallback',
    kind: 'bool',
    group: 'Proxy mode',
    help: 'Fall back from iptables to userspace instead of nftables, as old versions of kube-proxy did. The userspace mode goes around network policies. --strict-proxy-mode outranks it. (Not a flag of kube-proxy.)',
  }),
  flag({
    name: 'proxy-mode',
    kind: 'string',
    field: 'mode',
    group: 'Proxy mode',
    help: 'How services are made. Empty: iptables, as in kube-proxy.',
  }),
  flag({
    name: 'masquerade-all',
    kind: 'bool',
    field: 'masqueradeAll',
    group: 'Proxy mode',
    help: 'Masquerade all traffic sent to cluster IPs. Some CNI plugins need it.',
  }),
  flag({
    name: 'nodeport-addresses',
    kind: 'strings',
    field: 'nodePortAddresses',
    group: 'Proxy mode',
    help: "Where node ports are served: CIDRs, or the words 'primary' (the Node's own addresses), 'localhost', 'all'. Empty: primary in nftables mode, all in the others.",
  }),
  flag({
    name: 'connect-retry',
    kind: 'boolOrAnnotated',
    field: 'connectRetry',
    group: 'Proxy mode',
    help: 'Give a client another endpoint when the one it got refuses its connection, says nothing or is gone (TCP). For no Service (false), for those with the annotation service.kube-proxy-ts.io/connect-retry: "on" (annotated), or for all but those with "off" (true). (Not a flag of kube-proxy.)',
  }),
  flag({
    name: 'choose-at-connect',
    kind: 'string',
    field: 'chooseAtConnect',
    group: 'Proxy mode',
    help: 'Let processes of a cgroup choose the endpoint of a cluster IP when they connect, so that none of their packets has to be translated (TCP; modes nftables and iptables): "pods", or the folder of a cgroup. Empty: none. (Not a flag of kube-proxy.)',
  }),
]

const pods: readonly FlagSpec[] = [
  flag({
    name: 'detect-local-mode',
    kind: 'string',
    field: 'detectLocalMode',
    group: 'Traffic from pods',
    help: 'How traffic from pods of this node is recognised: ClusterCIDR, NodeCIDR, BridgeInterface or InterfaceNamePrefix. Empty: ClusterCIDR.',
  }),
  flag({
    name: 'cluster-cidr',
    kind: 'string',
    group: 'Traffic from pods',
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
    group: 'Traffic from pods',
    help: 'With BridgeInterface: traffic from this bridge is local.',
  }),
  flag({
    name: 'pod-interface-name-prefix',
    kind: 'string',
    field: 'detectLocal.interfaceNamePrefix',
    group: 'Traffic from pods',
    help: 'With InterfaceNamePrefix: traffic from interfaces whose name begins so is local.',
  }),
]

const conntrack: readonly FlagSpec[] = [
  flag({
    name: 'conntrack-max-per-core',
    kind: 'int32',
    field: 'conntrack.maxPerCore',
    group: 'Connection tracking',
    help: 'Tracked connections per CPU core. 0: leave the limit as it is and ignore --conntrack-min.',
  }),
  flag({
    name: 'conntrack-min',
    kind: 'int32',
    field: 'conntrack.min',
    group: 'Connection tracking',
    help: 'Tracked connections at least, whatever --conntrack-max-per-core gives.',
  }),
  flag({
    name: 'conntrack-tcp-timeout-established',
    kind: 'duration',
    field: 'conntrack.tcpEstablishedTimeoutMs',
    group: 'Connection tracking',
    help: 'How long idle TCP connections are tracked. 0: leave as it is.',
  }),
  flag({
    name: 'conntrack-tcp-timeout-close-wait',
    kind: 'duration',
    field: 'conntrack.tcpCloseWaitTimeoutMs',
    group: 'Connection tracking',
    help: 'How long connections in CLOSE_WAIT are tracked. 0: leave as it is.',
  }),
  flag({
    name: 'conntrack-tcp-be-liberal',
    kind: 'bool',
    field: 'conntrack.tcpBeLiberal',
    group: 'Connection tracking',
    help: 'Do not call packets outside the TCP window INVALID.',
  }),
  flag({
    name: 'conntrack-udp-timeout',
    kind: 'duration',
    field: 'conntrack.udpTimeoutMs',
    group: 'Connection tracking',
    help: 'How long unanswered UDP is tracked. 0: leave as it is.',
  }),
  flag({
    name: 'conntrack-udp-timeout-stream',
    kind: 'duration',
    field: 'conntrack.udpStreamTimeoutMs',
    group: 'Connection tracking',
    help: 'How long answered UDP is tracked. 0: leave as it is.',
  }),
]

const iptables: readonly FlagSpec[] = [
  flag({
    name: 'iptables-masquerade-bit',
    kind: 'int32',
    field: 'iptables.masqueradeBit',
    group: 'iptables mode',
    help: 'The bit of the packet mark that asks for masquerading, from 0 to 31. For the modes iptables and ipvs.',
  }),
  flag({
    name: 'iptables-localhost-nodeports',
    kind: 'bool',
    field: 'iptables.localhostNodePorts',
    group: 'iptables mode',
    help: 'Serve node ports on 127.0.0.1 too (IPv4 only).',
  }),
  flag({
    name: 'iptables-sync-period',
    kind: 'duration',
    default: 30_000,
    group: 'iptables mode',
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
    group: 'iptables mode',
    errorPaths: ['iptables.minSyncPeriod', 'nftables.minSyncPeriod'],
    help: `${minSync} For every mode but ipvs.`,
    apply: (draft, value) => {
      if (!hasPeriodsOfIpvs(draft)) draft.minSyncPeriodMs = value
    },
  }),
]

const ipvs: readonly FlagSpec[] = [
  flag({
    name: 'ipvs-sync-period',
    kind: 'duration',
    default: 30_000,
    group: 'ipvs mode',
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
    group: 'ipvs mode',
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
    group: 'ipvs mode',
    help: 'The IPVS scheduler. Empty: rr.',
  }),
  flag({
    name: 'ipvs-exclude-cidrs',
    kind: 'strings',
    field: 'ipvs.excludeCIDRs',
    group: 'ipvs mode',
    help: 'Virtual servers in these ranges are left alone.',
  }),
  flag({
    name: 'ipvs-strict-arp',
    kind: 'bool',
    field: 'ipvs.strictARP',
    group: 'ipvs mode',
    help: 'Set arp_ignore to 1 and arp_announce to 2.',
  }),
  flag({
    name: 'ipvs-tcp-timeout',
    kind: 'duration',
    field: 'ipvs.tcpTimeoutMs',
    group: 'ipvs mode',
    help: 'Timeout of idle TCP connections. 0: leave as it is.',
  }),
  flag({
    name: 'ipvs-tcpfin-timeout',
    kind: 'duration',
    field: 'ipvs.tcpFinTimeoutMs',
    group: 'ipvs mode',
    help: 'Timeout of TCP connections after a FIN. 0: leave as it is.',
  }),
  flag({
    name: 'ipvs-udp-timeout',
    kind: 'duration',
    field: 'ipvs.udpTimeoutMs',
    group: 'ipvs mode',
    help: 'Timeout of UDP. 0: leave as it is.',
  }),
]

const logging: readonly FlagSpec[] = [
  flag({
    name: 'v',
    short: 'v',
    kind: 'level',
    field: 'logging.verbosity',
    group: 'Logging',
    withConfig: 'outranks',
    help: 'How much is logged. 0: only what matters most. Errors are always logged.',
  }),
  flag({
    name: 'vmodule',
    kind: 'vmodule',
    group: 'Logging',
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
    group: 'Logging',
    withConfig: 'outranks',
    help: 'The form of log lines: text or json.',
  }),
  flag({
    name: 'log-flush-frequency',
    kind: 'duration',
    field: 'logging.flushFrequencyMs',
    group: 'Logging',
    withConfig: 'outranks',
    help: 'The longest that a buffered log line may wait.',
  }),
  ...(['text', 'json'] as const).flatMap((format) => [
    flag({
      name: `log-${format}-split-stream`,
      kind: 'bool',
      field: `logging.options.${format}.splitStream`,
      group: 'Logging',
      withConfig: 'outranks',
      help: `In ${format} format: errors to stderr, the rest to stdout. Needs the gate LoggingAlphaOptions.`,
    }),
    flag({
      name: `log-${format}-info-buffer-size`,
      kind: 'quantity',
      field: `logging.options.${format}.infoBufferSize`,
      group: 'Logging',
      withConfig: 'outranks',
      help: `In ${format} format with split streams: how many bytes of info messages may wait. Needs LoggingAlphaOptions.`,
    }),
  ]),
]

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
