// KubeProxyConfiguration v1alpha1 as one table: every field that a file may have, with its default and its rules.
// As in kube-proxy 1.37; fields marked `legacy` are from older versions.

import {
  isSocketScope,
  isCidr,
  isHostPort,
  isIp,
  notNegative,
  oneOf,
  positive,
  previousMinor,
  within,
} from './checks.ts'
import {
  bool,
  boolOrAnnotated,
  bools,
  duration,
  durationOrNanos,
  float,
  int32,
  nullableInt32,
  object,
  quantity,
  string,
  strings,
  uint32,
  vmodule,
} from './field-kinds.ts'
import type { Infer } from './field-kinds.ts'
import { compatibleWith } from './version.ts'

export const apiVersion = 'kubeproxy.config.k8s.io/v1alpha1'
export const kind = 'KubeProxyConfiguration'

/** The ways to choose an endpoint. */
const balances = ['random', 'hash-connection', 'hash-client', 'least-connections'] as const

export const detectLocalModes = ['ClusterCIDR', 'NodeCIDR', 'BridgeInterface', 'InterfaceNamePrefix'] as const

const second = 1000
const minute = 60 * second
const hour = 60 * minute
const maxInt32 = 2 ** 31 - 1

/** For a field that Go keeps by value: an explicit zero means the default, too. */
function orDefault<T>(value: T): { default: T; zero: 'means-default' } {
  return { default: value, zero: 'means-default' }
}

const periodHelp = "How often everything is checked again and cleaned up (e.g. '5s', '2h22m'). Must be greater than 0."
const minPeriodHelp = 'The least time between two updates of the kernel. 0 means that every change is applied at once.'

const outputRouting = {
  splitStream: bool('Write errors to stderr and the rest to stdout. Needs the gate LoggingAlphaOptions.', {
    omitDefault: true,
  }),
  infoBufferSize: quantity('With splitStream: how many bytes of info messages may wait. Needs LoggingAlphaOptions.', {
    zero: 'means-default',
  }),
}

export const configurationFields = {
  featureGates: bools('Which optional features are on or off.', { omitDefault: true }),
  clientConnection: object('How to talk to the API server.', {
    kubeconfig: string('Path of the kubeconfig file. Empty: the configuration that a pod finds in its cluster.'),
    acceptContentTypes: string('The Accept header of requests, overriding what contentType implies.'),
    contentType: string('The content type of requests.', orDefault('application/vnd.kubernetes.protobuf')),
    qps: float('Requests per second, on average.', orDefault(5)),
    burst: int32('Requests that may be sent at once beyond qps.', { ...orDefault(10), check: notNegative }),
  }),
  logging: object('What is logged, and how.', {
    format: string('The form of log lines: text or json.', { ...orDefault('text'), check: oneOf('text', 'json') }),
    flushFrequency: durationOrNanos('The longest that a buffered log line may wait.', {
      ...orDefault(5 * second),
      check: positive,
    }),
    verbosity: uint32('How much is logged. 0: only what matters most. Errors are always logged.', {
      check: within(0, maxInt32),
    }),
    vmodule: vmodule('A verbosity of their own for files whose name matches a pattern. Text format only.', {
      omitDefault: true,
    }),
    options: object('Settings of each format.', {
      text: object('Settings of the text format.', outputRouting),
      json: object('Settings of the json format.', outputRouting),
    }),
  }),
  hostnameOverride: string('The name of the Node that this proxy runs on. Empty: the host name.'),
  bindAddress: string("Overrides the proxy's idea of the node's primary IP. Nothing is bound to it.", {
    ...orDefault('0.0.0.0'),
    check: isIp,
  }),
  healthzBindAddress: string('IP:port of the health server. Default 0.0.0.0:10256 ([::] when bindAddress is IPv6).', {
    zero: 'means-default',
    check: (value) => (value === '' ? undefined : isHostPort(value)),
  }),
  metricsBindAddress: string('IP:port of the metrics server. Default 127.0.0.1:10249 ([::1] for IPv6).', {
    zero: 'means-default',
    check: (value) => (value === '' ? undefined : isHostPort(value)),
  }),
  bindAddressHardFail: bool('End the program when a server cannot bind its port, instead of trying again.'),
  enableProfiling: bool('Serve profiles under /debug/pprof on the metrics port.'),
  showHiddenMetricsForVersion: string(
    'Show metrics that were hidden since this version: the previous minor one, e.g. "1.36".',
    {
      check: previousMinor(compatibleWith),
    },
  ),
  mode: string('How Services are made. Empty: iptables, as in kube-proxy.'),
  iptables: object('Settings of the iptables mode; the ipvs mode uses the masquerade settings too.', {
    masqueradeBit: int32(
      'The bit of the packet mark that asks for masquerading, from 0 to 31. For the modes iptables and ipvs.',
      {
        default: 14,
        check: within(0, 31),
      },
    ),
    masqueradeAll: bool('Masquerade all traffic sent to cluster IPs.'),
    localhostNodePorts: bool('Serve node ports on 127.0.0.1 too (IPv4 only).', { default: true }),
    syncPeriod: duration(periodHelp, orDefault(30 * second)),
    minSyncPeriod: duration(minPeriodHelp, orDefault(1 * second)),
  }),
  ipvs: object(
    'Settings of the ipvs mode.',
    {
      syncPeriod: duration(periodHelp, orDefault(30 * second)),
      minSyncPeriod: duration(minPeriodHelp),
      scheduler: string('The IPVS scheduler. Empty: rr.'),
      excludeCIDRs: strings('Virtual servers in these ranges are left alone.', { each: isCidr }),
      strictARP: bool('Set arp_ignore to 1 and arp_announce to 2.'),
      tcpTimeout: duration('Timeout of idle TCP connections. 0: leave as it is.', { check: notNegative }),
      tcpFinTimeout: duration('Timeout of TCP connections after a FIN. 0: leave as it is.', { check: notNegative }),
      udpTimeout: duration('Timeout of UDP. 0: leave as it is.', { check: notNegative }),
    },
    { onlyInMode: 'ipvs' },
  ),
  nftables: object(
    'Settings of the nftables mode.',
    {
      masqueradeBit: int32('The bit of the packet mark that asks for masquerading.', {
        default: 14,
        check: within(0, 31),
      }),
      masqueradeAll: bool('Masquerade all traffic sent to cluster IPs.'),
      syncPeriod: duration(periodHelp, orDefault(30 * second)),
      minSyncPeriod: duration(minPeriodHelp, orDefault(1 * second)),
    },
    { onlyInMode: 'nftables' },
  ),
  winkernel: object('Settings of the Windows mode. Read and written, not used.', {
    networkName: string('The name of the HNS network.'),
    sourceVip: string('The address used for source NAT.'),
    enableDSR: bool('Use direct server return.'),
    rootHnsEndpointName: string('The name of the HNS endpoint of the root namespace.'),
    forwardHealthCheckVip: bool('Forward the service VIP for health check ports.'),
  }),
  detectLocalMode: string(
    'How traffic from pods of this node is recognised: ClusterCIDR, NodeCIDR, BridgeInterface or InterfaceNamePrefix. Empty: ClusterCIDR.',
    {
      check: oneOf(...detectLocalModes, ''),
    },
  ),
  detectLocal: object('Settings of detectLocalMode.', {
    bridgeInterface: string('With BridgeInterface: traffic from this bridge is local.'),
    interfaceNamePrefix: string('With InterfaceNamePrefix: traffic from interfaces whose name begins so is local.'),
  }),
  clusterCIDR: string('The range of pod addresses, or an IPv4 and an IPv6 range separated by a comma.'),
  nodePortAddresses: strings(
    "Where node ports are served: CIDRs, or the words 'primary' (the Node's own addresses), 'localhost', 'all'. Empty: primary in nftables mode, all in the others.",
  ),
  oomScoreAdj: int32('The oom_score_adj of this process, from -1000 to 1000.', {
    default: -999,
    check: within(-1000, 1000),
  }),
  conntrack: object('Limits and timeouts of connection tracking.', {
    max: nullableInt32('The number of tracked connections, whatever maxPerCore and min say. 0: not set.', {
      omitDefault: true,
      check: (value) => (value === null ? undefined : notNegative(value)),
      legacy: 'it was removed from kube-proxy in 1.14; maxPerCore and min replace it',
    }),
    maxPerCore: int32('Tracked connections per CPU core. 0: leave the limit as it is and ignore min.', {
      default: 32 * 1024,
      check: notNegative,
    }),
    min: int32('Tracked connections at least, whatever maxPerCore gives.', { default: 128 * 1024, check: notNegative }),
    tcpEstablishedTimeout: duration('How long idle TCP connections are tracked. 0: leave as it is.', {
      default: 24 * hour,
      check: notNegative,
    }),
    tcpCloseWaitTimeout: duration('How long connections in CLOSE_WAIT are tracked. 0: leave as it is.', {
      default: hour,
      check: notNegative,
    }),
    tcpBeLiberal: bool('Do not call packets outside the TCP window INVALID.'),
    udpTimeout: duration('How long unanswered UDP is tracked. 0: leave as it is.', { check: notNegative }),
    udpStreamTimeout: duration('How long answered UDP is tracked. 0: leave as it is.', { check: notNegative }),
  }),
  configSyncPeriod: duration(
    'How often everything known from the API server is gone over again. Must be greater than 0.',
    {
      ...orDefault(15 * minute),
      check: positive,
    },
  ),
  connectRetry: boolOrAnnotated(
    'Give a client another endpoint when the one it got does not answer: for no Service (false), for those that ask for it by annotation (annotated), or for all but those that decline it (true). Not a field of kube-proxy.',
    { omitDefault: true },
  ),
  answerPing: bool(
    'Let cluster IPs and load-balancer IPs answer pings while their Service has endpoints. Not a field of kube-proxy.',
    { omitDefault: true },
  ),
  balance: string(
    'How an endpoint is chosen for Services that do not say by annotation: random, hash-connection, hash-client or least-connections. Empty: as in kube-proxy. Not a field of kube-proxy.',
    { omitDefault: true, check: oneOf('', ...balances) },
  ),
  socketBalancing: string(
    'Let processes choose the endpoint of a Service when they connect (TCP): those of "pods", of the "node", "all", or those of a cgroup, by its folder. Empty: none. Not a field of kube-proxy.',
    { omitDefault: true, check: isSocketScope },
  ),
  chooseAtConnect: string('The old name of socketBalancing.', {
    omitDefault: true,
    legacy: 'it is called socketBalancing now',
  }),
  trafficMetrics: int32(
    'Show the traffic of so many service ports as metrics, and of the rest as "other". 0: nothing counts. Not a field of kube-proxy.',
    { omitDefault: true, check: within(0, 10_000) },
  ),
  portRange: string('Userspace mode: the ports that the proxy listens on, "a-b". Empty: any free port.'),
  udpIdleTimeout: duration('Userspace mode: how long an idle UDP client keeps its socket.', {
    ...orDefault(250),
    omitDefault: true,
    check: positive,
    legacy: 'it only concerns the userspace mode',
  }),
  resourceContainer: string('The cgroup that the proxy moved itself into, once.', {
    omitDefault: true,
    legacy: 'it was removed from kube-proxy in 1.15 and does nothing',
  }),
  windowsRunAsService: bool('Run as a Windows service. Read and written, not used.', { omitDefault: true }),
}

/** A configuration file with defaults filled in. */
export type FileConfiguration = Infer<typeof configurationFields>
