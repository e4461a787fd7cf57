// The metrics of the proxy: kube-proxy's, under its names, labels and buckets, and our own, which begin with kubeproxyts_.
//
// All metrics exist in every mode, so that code need not ask before it writes; a mode's page shows those that kube-proxy
// shows in that mode. As there, a metric with labels is absent until something has been written to it.

import { setImmediate } from 'node:timers/promises'
import { conntrackMetrics, coreMetrics, iptablesMetrics, nftablesMetrics, partialSyncMetrics } from './kube-proxy.ts'
import { processMetrics, processStartSeconds, processStartTime } from './process.ts'
import { counter, gauge, histogram, Registry, type Printable } from './registry.ts'

/** What kubernetes_build_info says. */
export interface BuildInfo {
  readonly major: string
  readonly minor: string
  /** With the leading v. */
  readonly version: string
  readonly commit: string
  /** `clean`, `dirty`, or empty. */
  readonly treeState: string
  readonly buildDate: string
}

export interface MetricsOptions {
  /** Which of the metrics that only some modes have are shown. */
  readonly shown: readonly ModeMetric[]
  readonly build: BuildInfo
  /** Feature gates: `{ NFTablesNetlink: { stage: 'BETA', enabled: true } }`. The stage of a GA feature is ''. */
  readonly features?: Readonly<Record<string, { readonly stage: string; readonly enabled: boolean }>>
  /** Whether histograms have native buckets in the protobuf format; true if not given. */
  readonly nativeHistograms?: boolean
}

/** How a page is asked for. */
export interface PageRequest {
  readonly format: 'text' | 'protobuf'
  /** The metrics to show; undefined: all. */
  readonly names?: ReadonlySet<string> | undefined
}

const everythingAsText: PageRequest = { format: 'text' }

const encoder = new TextEncoder()

export type Metrics = ReturnType<typeof createMetrics>

/** A metric that only some modes show. */
export type ModeMetric = keyof ReturnType<typeof metricsOfModes>

/** The metrics of one proxy. */
export function createMetrics(options: MetricsOptions) {
  const core = coreMetrics()
  const byMode = metricsOfModes()
  const rest = restClientMetrics()
  const own = ownMetrics()
  const sli = sliMetrics()

  const page = new Registry()
  page.register(...processMetrics(), buildInfo(options.build), ...featureGates(options.features ?? {}))
  page.register(...Object.values(core), ...Object.values(rest), ...Object.values(own))
  page.register(...options.shown.map((key) => byMode[key]))
  const sliPage = new Registry()
  const readers: (() => void | Promise<void>)[] = []
  let last: Promise<unknown> = Promise.resolve()
  /** What is asked for takes its turn, whether what came before failed or not. */
  const apart = <T>(work: () => T | Promise<T>): Promise<T> => {
    const done = last.then(work)
    last = done.catch(() => {})
    return done
  }
  sliPage.register(processStartTime('ALPHA'), ...Object.values(sli))
  const { nativeHistograms = true } = options
  /** In parts. Other work gets a turn after each: with thousands of series it is megabytes. */
  const bodyOf = async (registry: Registry, { format, names }: PageRequest): Promise<readonly Uint8Array[]> => {
    const parts: Uint8Array[] = []
    if (format === 'protobuf') {
      for (const part of registry.encoded({ nativeHistograms }, names)) {
        if (part.length > 0) parts.push(part)
        await setImmediate()
      }
      return parts
    }
    for (const part of registry.parts(names)) {
      if (parts.length > 0) await setImmediate()
      parts.push(encoder.encode(part))
    }
    return parts
  }

  return {
    ...core,
    ...byMode,
    ...rest,
    ...own,
    ...sli,
    /** When this process started, in seconds since 1970. */
    startSeconds: processStartSeconds,
    /** Adds a metric that only the caller can read, such as a counter that lives in the kernel. */
    register: (...metrics: Printable[]) => page.register(...metrics),
    definitions: () => page.definitions(),
    /** Calls back before each page is made, to bring metrics up to date that are read from elsewhere. A page waits for it. */
    beforePage: (read: () => void | Promise<void>) => void readers.push(read),
    /** Does something while no page is made: what it changes would be in one half of a page and not in the other. */
    apart,
    /** The body of /metrics, in parts. */
    page: (request = everythingAsText): Promise<readonly Uint8Array[]> =>
      apart(async () => {
        for (const read of readers) await read()
        return bodyOf(page, request)
      }),
    /** The same in one turn, without what takes longer to bring up to date. */
    text() {
      for (const read of readers) void read()
      return page.text()
    },
    /** The body of /metrics/slis. */
    sliPage: (request = everythingAsText): Promise<readonly Uint8Array[]> => bodyOf(sliPage, request),
    resetSlis: () => sliPage.reset(),
  }
}

function metricsOfModes() {
  return { ...conntrackMetrics(), ...partialSyncMetrics(), ...iptablesMetrics(), ...nftablesMetrics() }
}

/** About requests to the API server, under client-go's names. */
function restClientMetrics() {
  return {
    restRequests: counter({
      name: 'rest_client_requests_total',
      help: 'Number of HTTP requests, partitioned by status code, method, and host.',
      labels: ['code', 'method', 'host'],
      stability: 'ALPHA',
    }),
    restRequestDuration: histogram({
      name: 'rest_client_request_duration_seconds',
      help: 'Request latency in seconds. Broken down by verb, and host.',
      labels: ['verb', 'host'],
      stability: 'ALPHA',
      buckets: [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60],
    }),
  }
}

/** The results of the checks behind /healthz on the metrics port, for /metrics/slis. */
function sliMetrics() {
  return {
    healthcheck: gauge({
      name: 'kubernetes_healthcheck',
      help: 'This metric records the result of a single healthcheck.',
      labels: ['name', 'type'],
      stability: 'STABLE',
    }),
    healthchecks: counter({
      name: 'kubernetes_healthchecks_total',
      help: 'This metric records the results of all healthcheck.',
      labels: ['name', 'type', 'status'],
      stability: 'STABLE',
    }),
  }
}

/** What kube-proxy does not measure. */
function ownMetrics() {
  return {
    /** From the first event of a change to the kernel's acknowledgement: what this node adds to a change's way. */
    changeDuration: histogram({
      name: 'kubeproxyts_change_duration_seconds',
      help: 'Time from receiving the first event of a sync to the kernel acknowledging it',
      labels: ['ip_family'],
      buckets: Array.from({ length: 16 }, (_, index) => 0.0001 * 2 ** index),
    }),
    mode: gauge({
      name: 'kubeproxyts_mode',
      help: 'The mode in use, which differs from the configured one when that cannot run here',
      labels: ['mode', 'configured'],
    }),
    iptablesLockWaits: counter({
      name: 'kubeproxyts_iptables_lock_waits_total',
      help: 'How often the proxy waited for the xtables lock; a long wait counts again every 5 s',
      labels: ['ip_family'],
    }),
    refusals: counter({
      name: 'kubeproxyts_refused_services_total',
      help: 'How often the kernel refused the rules of a service port, which then has none',
      labels: ['ip_family'],
    }),
    heals: counter({
      name: 'kubeproxyts_heals_total',
      help: 'How often the proxy restored rules that another program had changed or removed',
      labels: ['ip_family'],
    }),
    inSync: gauge({
      name: 'kubeproxyts_kernel_in_sync',
      help: 'Whether the kernel has the rules that the proxy decided on, as far as it knows: 1 or 0. /statusz and the control socket say what differs',
      labels: ['ip_family'],
    }),
    outOfSyncSince: gauge({
      name: 'kubeproxyts_kernel_out_of_sync_since_seconds',
      help: 'When the kernel ceased to have the rules that the proxy decided on, in seconds since 1970; 0 while it has them',
      labels: ['ip_family'],
    }),
    driftOperations: counter({
      name: 'kubeproxyts_drift_operations_total',
      help: 'Operations to restore what another program had changed or removed',
      labels: ['ip_family'],
    }),
    longestTurn: gauge({
      name: 'kubeproxyts_longest_turn_seconds',
      help: 'The longest turn of the event loop in the last five to ten minutes',
      labels: [],
    }),
    longestCall: gauge({
      name: 'kubeproxyts_longest_system_call_seconds',
      help: 'The longest system call that the program itself made on the main thread, in the last five to ten minutes',
      labels: [],
    }),
    events: counter({
      name: 'kubeproxyts_events_total',
      help: 'Events for the API server, by outcome: sent, failed (each attempt; the proxy retries) or dropped',
      labels: ['outcome'],
    }),
    subscriberFailures: counter({
      name: 'kubeproxyts_subscriber_failures_total',
      help: 'How often work after a sync failed, with the rules in force; the proxy retries it',
      labels: ['ip_family', 'subscriber'],
    }),
    subscriberBehind: gauge({
      name: 'kubeproxyts_subscriber_behind',
      help: 'Whether work after a sync failed and has not succeeded since: 1 or 0',
      labels: ['ip_family', 'subscriber'],
    }),
    netlinkBytes: counter({
      name: 'kubeproxyts_netlink_sent_bytes_total',
      help: 'Bytes of rules sent to the kernel',
      labels: ['ip_family'],
    }),
    transactions: counter({
      name: 'kubeproxyts_transactions_total',
      help: 'Transactions with rules, by outcome: committed or refused',
      labels: ['ip_family', 'outcome'],
    }),
    operations: counter({
      name: 'kubeproxyts_operations_total',
      help: 'Objects written to the kernel or deleted in it: rules, chains, elements, virtual servers',
      labels: ['ip_family'],
    }),
    watchRestarts: counter({
      name: 'kubeproxyts_watch_restarts_total',
      help: 'How often the watch of a resource ended and was started again',
      labels: ['resource'],
    }),
    retrySuspected: counter({
      name: 'kubeproxyts_connect_retry_suspected_total',
      help: 'Backends at which a client failed, by how: refused, silent or unreachable',
      labels: ['ip_family', 'reason'],
    }),
    retryEjected: counter({
      name: 'kubeproxyts_connect_retry_ejected_total',
      help: 'Backends that failed the probe of this node, too, and were ejected, by how a client had failed',
      labels: ['ip_family', 'reason'],
    }),
    retryReturned: counter({
      name: 'kubeproxyts_connect_retry_returned_total',
      help: 'Ejected backends that answered again, by how a client had failed',
      labels: ['ip_family', 'reason'],
    }),
    retryRetried: counter({
      name: 'kubeproxyts_connect_retry_retried_total',
      help: 'Connections that were given another backend, by how the one before had failed: refused, silent or unreachable',
      labels: ['ip_family', 'reason'],
    }),
    endedConnections: counter({
      name: 'kubeproxyts_ended_connections_total',
      help: 'TCP connections to removed endpoints that were reset, for Services with the annotation removed-endpoints',
      labels: ['ip_family'],
    }),
    retryMissed: counter({
      name: 'kubeproxyts_connect_retry_missed_total',
      help: 'How often the kernel reported failures faster than the proxy could read them; the rest were not handled',
      labels: [],
    }),
    retryEjectedNow: gauge({
      name: 'kubeproxyts_connect_retry_ejected_backends',
      help: 'Backends that are ejected now',
      labels: ['ip_family'],
    }),
    connectFrontends: gauge({
      name: 'kubeproxyts_socket_balancing_frontends',
      help: 'With --socket-balancing: frontends whose endpoints are chosen when a process connects',
      labels: ['ip_family'],
    }),
    trafficConnections: counter({
      name: 'kubeproxyts_traffic_connections_total',
      help: 'With --traffic-metrics: packets that begin a connection, by service port',
      labels: ['service_port'],
    }),
    trafficPackets: counter({
      name: 'kubeproxyts_traffic_packets_total',
      help: 'With --traffic-metrics: packets, sent by clients or received by them',
      labels: ['service_port', 'direction'],
    }),
    trafficBytes: counter({
      name: 'kubeproxyts_traffic_bytes_total',
      help: 'With --traffic-metrics: bytes, sent by clients or received by them',
      labels: ['service_port', 'direction'],
    }),
    trafficRefused: counter({
      name: 'kubeproxyts_traffic_refused_packets_total',
      help: 'With --traffic-metrics: packets that were refused or dropped, for lack of endpoints, because of their source, or over a limit',
      labels: ['service_port'],
    }),
    configReloads: counter({
      name: 'kubeproxyts_config_reloads_total',
      help: 'Changes of the configuration file, by outcome: applied or rejected',
      labels: ['outcome'],
    }),
  }
}

function buildInfo(build: BuildInfo): Printable {
  const metric = gauge({
    name: 'kubernetes_build_info',
    help: "A metric with a constant '1' value labeled by version, commit, build date, compiler and platform.",
    // Go's labels, since queries join on them.
    labels: [
      'major',
      'minor',
      'git_version',
      'git_commit',
      'git_tree_state',
      'build_date',
      'go_version',
      'compiler',
      'platform',
    ],
    stability: 'BETA',
  })
  const { major, minor, version, commit, treeState, buildDate } = build
  const platform = `${process.platform}/${process.arch === 'x64' ? 'amd64' : process.arch}`
  metric.with(major, minor, version, commit, treeState, buildDate, `node ${process.version}`, 'v8', platform).set(1)
  return metric
}

function featureGates(features: NonNullable<MetricsOptions['features']>): Printable[] {
  const metric = gauge({
    name: 'kubernetes_feature_enabled',
    help: 'This metric records the data about the stage and enablement of a k8s feature.',
    labels: ['name', 'stage'],
    stability: 'BETA',
  })
  for (const [name, { stage, enabled }] of Object.entries(features)) metric.with(name, stage).set(enabled ? 1 : 0)
  return [metric]
}
