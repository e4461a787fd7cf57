// Every flag of today's kube-proxy. The ones of older versions are in old-flags.ts.

import { describeFeatureGates } from '../config/feature-gates.ts'
import { blockOf } from '../config/modes.ts'
import { fieldFlag, flag, type FlagSpec, inGroup } from './flag-spec.ts'
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
  fieldFlag('kubeconfig', 'clientConnection.kubeconfig', {
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
  fieldFlag('kube-api-content-type', 'clientConnection.contentType'),
  fieldFlag('kube-api-qps', 'clientConnection.qps'),
  fieldFlag('kube-api-burst', 'clientConnection.burst', {
    help: 'Requests that may be sent at once beyond --kube-api-qps.',
  }),
  fieldFlag('config-sync-period', 'configSyncPeriodMs'),
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
  fieldFlag('bind-address', 'bindAddress', { kind: 'ip' }),
  fieldFlag('healthz-bind-address', 'healthzBindAddress', { kind: 'ipPort', help: 'Where the health server listens.' }),
  fieldFlag('metrics-bind-address', 'metricsBindAddress', {
    kind: 'ipPort',
    help: 'Where the metrics server listens.',
  }),
  fieldFlag('traffic-metrics', 'trafficMetrics', {
    help: 'Show connections, packets and bytes of so many service ports as metrics, those that had traffic first, and of the rest as "other". 0: the kernel counts nothing. What it costs: docs/guides/top.md. (Not a flag of kube-proxy.)',
  }),
  fieldFlag('bind-address-hard-fail', 'bindAddressHardFail'),
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
  fieldFlag('profiling', 'enableProfiling'),
  fieldFlag('show-hidden-metrics-for-version', 'showHiddenMetricsForVersion'),
  fieldFlag('oom-score-adj', 'oomScoreAdj'),
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
  fieldFlag('proxy-mode', 'mode'),
  flag({
    name: 'masquerade-all',
    kind: 'bool',
    field: 'masqueradeAll',
    help: 'Masquerade all traffic sent to cluster IPs. Some CNI plugins need it.',
  }),
  fieldFlag('nodeport-addresses', 'nodePortAddresses'),
  fieldFlag('answer-ping', 'answerPing', {
    help: 'Let cluster IPs and load-balancer IPs answer pings while their Service has endpoints; the node answers, not an endpoint. In ipvs mode they always do. (Not a flag of kube-proxy.)',
  }),
  fieldFlag('balance', 'balance', {
    help: 'How an endpoint is chosen for Services that do not say by annotation service.kube-proxy-ts.io/balance: random, hash-connection (by the address and port of the client), hash-client (by its address) or least-connections. Empty: as in kube-proxy. (Not a flag of kube-proxy.)',
  }),
  fieldFlag('connect-retry', 'connectRetry', {
    help: 'Give a client another endpoint when the one it got refuses its connection, says nothing or is gone (TCP). For no Service (false), for those with the annotation service.kube-proxy-ts.io/connect-retry: "on" (annotated), or for all but those with "off" (true). (Not a flag of kube-proxy.)',
  }),
  fieldFlag('socket-balancing', 'socketBalancing', {
    help: 'Let processes choose the endpoint of a Service when they connect, so that none of their packets has to be translated (TCP, and UDP that is sent without connect(); modes nftables and iptables): those of pods, of the node, all, or those of a cgroup, by its folder. Empty: none. (Not a flag of kube-proxy.)',
  }),
])

const pods = inGroup('Traffic from pods', [
  fieldFlag('detect-local-mode', 'detectLocalMode'),
  flag({
    name: 'cluster-cidr',
    kind: 'string',
    errorPaths: ['clusterCIDR'],
    help: 'The range of pod addresses, or an IPv4 and an IPv6 range separated by a comma.',
    apply: (draft, value) => {
      draft.detectLocal.clusterCIDRs = value === '' ? [] : value.split(',')
    },
  }),
  fieldFlag('pod-bridge-interface', 'detectLocal.bridgeInterface'),
  fieldFlag('pod-interface-name-prefix', 'detectLocal.interfaceNamePrefix'),
])

const conntrack = inGroup('Connection tracking', [
  fieldFlag('conntrack-max-per-core', 'conntrack.maxPerCore', {
    help: 'Tracked connections per CPU core. 0: leave the limit as it is and ignore --conntrack-min.',
  }),
  fieldFlag('conntrack-min', 'conntrack.min', {
    help: 'Tracked connections at least, whatever --conntrack-max-per-core gives.',
  }),
  fieldFlag('conntrack-tcp-timeout-established', 'conntrack.tcpEstablishedTimeoutMs'),
  fieldFlag('conntrack-tcp-timeout-close-wait', 'conntrack.tcpCloseWaitTimeoutMs'),
  fieldFlag('conntrack-tcp-be-liberal', 'conntrack.tcpBeLiberal'),
  fieldFlag('conntrack-udp-timeout', 'conntrack.udpTimeoutMs'),
  fieldFlag('conntrack-udp-timeout-stream', 'conntrack.udpStreamTimeoutMs'),
])

const iptables = inGroup('iptables mode', [
  fieldFlag('iptables-masquerade-bit', 'iptables.masqueradeBit'),
  fieldFlag('iptables-localhost-nodeports', 'iptables.localhostNodePorts'),
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
  fieldFlag('ipvs-scheduler', 'ipvs.scheduler'),
  fieldFlag('ipvs-exclude-cidrs', 'ipvs.excludeCIDRs'),
  fieldFlag('ipvs-strict-arp', 'ipvs.strictARP'),
  fieldFlag('ipvs-tcp-timeout', 'ipvs.tcpTimeoutMs'),
  fieldFlag('ipvs-tcpfin-timeout', 'ipvs.tcpFinTimeoutMs'),
  fieldFlag('ipvs-udp-timeout', 'ipvs.udpTimeoutMs'),
])

const logging = inGroup('Logging', [
  fieldFlag('v', 'logging.verbosity', { short: 'v', withConfig: 'outranks' }),
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
  fieldFlag('logging-format', 'logging.format', { withConfig: 'outranks' }),
  fieldFlag('log-flush-frequency', 'logging.flushFrequencyMs', { withConfig: 'outranks' }),
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
