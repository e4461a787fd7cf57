// Flags of older kube-proxies, of Windows, and of libraries that leaked theirs into kube-proxy. A manifest that was never
// updated still starts: what had a meaning keeps it, the rest is accepted with a warning.

import { appendPort, healthzPort, metricsPort } from '../config/defaults.ts'
import { splitHostPort } from '../config/checks.ts'
import { joinHostPort, canonicalIp } from '../lib/ip.ts'
import type { FlagKindName } from './flag-kinds.ts'
import { flag, type FlagSpec, inGroup } from './flag-spec.ts'

const stillWork = inGroup('Old flags that still work', [
  flag({
    name: 'cleanup-iptables',
    kind: 'bool',
    help: 'The old name of --cleanup.',
    warning: 'use --cleanup instead',
  }),
  flag({
    name: 'choose-at-connect',
    kind: 'string',
    field: 'socketBalancing',
    help: 'The old name of --socket-balancing.',
    warning: 'use --socket-balancing instead, this name goes with the next version',
  }),
  oldPort({
    of: 'healthz',
    default: healthzPort,
    at: '0.0.0.0',
    help: 'The port of the health server. 0: no health server.',
  }),
  oldPort({
    of: 'metrics',
    default: metricsPort,
    at: '127.0.0.1',
    help: 'The port of the metrics server. 0: no metrics server.',
  }),
  flag({
    name: 'conntrack-max',
    kind: 'int32',
    errorPaths: ['conntrack.max'],
    help: 'The number of tracked connections, whatever --conntrack-max-per-core and --conntrack-min say. 0: not set.',
    warning: 'use --conntrack-max-per-core and --conntrack-min instead',
    apply: (draft, value) => {
      // In the versions that had the flag, 0 left the decision to the other two.
      draft.conntrack.max = value === 0 ? null : value
    },
  }),
  flag({
    name: 'udp-timeout',
    kind: 'duration',
    field: 'userspace.udpIdleTimeoutMs',
    errorPaths: ['udpIdleTimeout'],
    help: 'Userspace mode: how long an idle UDP client keeps its socket. Must be greater than 0.',
    warning: 'it only concerns the userspace mode',
  }),
  flag({
    name: 'proxy-port-range',
    kind: 'portRange',
    field: 'userspace.portRange',
    help: 'Userspace mode: the ports that the proxy listens on, a-b, a+n or one port. Empty or 0-0: any free port.',
    warning: 'it only concerns the userspace mode',
  }),
  flag({
    name: 'logtostderr',
    kind: 'bool',
    default: true,
    help: 'Log to stderr; false: to the files of --log-file or --log-dir.',
  }),
  flag({ name: 'alsologtostderr', kind: 'bool', help: 'Log to stderr as well as to files.' }),
  flag({
    name: 'stderrthreshold',
    kind: 'severity',
    default: 2,
    help: 'With --logtostderr=false: what is as severe as this goes to stderr too.',
  }),
  flag({ name: 'log-dir', kind: 'string', help: 'With --logtostderr=false: the folder of log files.' }),
  flag({ name: 'log-file', kind: 'string', help: 'With --logtostderr=false: the log file.' }),
  flag({
    name: 'log-file-max-size',
    kind: 'uint64',
    default: 1800,
    help: 'The size in megabytes at which --log-file is started again. 0: never.',
  }),
  flag({ name: 'one-output', kind: 'bool', help: 'Write each line only to the file of its own severity.' }),
  flag({ name: 'skip-headers', kind: 'bool', help: 'Leave the header out of log lines.' }),
  flag({ name: 'skip-log-headers', kind: 'bool', help: 'Leave the header out of log files.' }),
  flag({ name: 'add-dir-header', kind: 'bool', help: "Put the file's folder into the header of log lines." }),
])

/**
 * No port: no server. A port is added to an address without one; an address with a port keeps it. A written file
 * knows no such flags: there, kube-proxy ignores them.
 */
function addressWithPort(address: string, port: number): string {
  if (port === 0) return ''
  if (splitHostPort(address) !== undefined) return address
  const ip = canonicalIp(address)
  return ip === undefined ? appendPort(address, port) : joinHostPort(ip, port)
}

function withoutEffect(kind: FlagKindName, reason: string, ...names: readonly string[]) {
  return names.map((name) => flag({ name, kind, help: reason, warning: `it has no effect: ${reason}` }))
}

const doNothing = inGroup('Flags that are accepted and do nothing', [
  ...withoutEffect('bool', '--cleanup removes IPVS rules that are ours, and a start never flushes any', 'cleanup-ipvs'),
  ...withoutEffect(
    'string',
    "kube-proxy lost it in 1.15; the cgroup is the service manager's business",
    'resource-container',
  ),
  ...withoutEffect('string', 'stack traces are printed with errors at -v=4 and above', 'log-backtrace-at'),
  ...withoutEffect('bool', 'it is for Windows', 'windows-service', 'enable-dsr', 'forward-healthcheck-vip'),
  ...withoutEffect('string', 'it is for Windows', 'source-vip', 'network-name', 'root-hnsendpoint-name'),
  ...withoutEffect(
    'string',
    'it belonged to a library that kube-proxy was built with',
    'boot-id-file',
    'machine-id-file',
    'azure-container-registry-config',
    'google-json-key',
    'cloud-provider-gce-lb-src-cidrs',
    'container-hints',
    'containerd',
    'docker',
    'docker-env-metadata-whitelist',
    'docker-root',
    'docker-tls-ca',
    'docker-tls-cert',
    'docker-tls-key',
    'event-storage-age-limit',
    'event-storage-event-limit',
    'storage-driver-db',
    'storage-driver-host',
    'storage-driver-password',
    'storage-driver-table',
    'storage-driver-user',
  ),
  ...withoutEffect(
    'bool',
    'it belonged to a library that kube-proxy was built with',
    'docker-only',
    'docker-tls',
    'enable-load-reader',
    'log-cadvisor-usage',
    'storage-driver-secure',
  ),
  ...withoutEffect(
    'int32',
    'it belonged to a library that kube-proxy was built with',
    'application-metrics-count-limit',
  ),
  ...withoutEffect(
    'duration',
    'it belonged to a library that kube-proxy was built with',
    'global-housekeeping-interval',
    'housekeeping-interval',
    'storage-driver-buffer-duration',
  ),
])

export const oldFlags: readonly FlagSpec[] = [...stillWork, ...doNothing]

/** `--healthz-port` and `--metrics-port`: the address is that of the new flag, else `at`. */
function oldPort(old: { of: 'healthz' | 'metrics'; default: number; at: string; help: string }) {
  const field = `${old.of}BindAddress` as const
  return flag({
    name: `${old.of}-port`,
    kind: 'int32',
    default: old.default,
    errorPaths: [field],
    help: old.help,
    warning: `use --${old.of}-bind-address instead`,
    apply: (draft, value, given) => {
      if (given.has('write-config-to')) return
      draft[field] = addressWithPort(given.has(`${old.of}-bind-address`) ? draft[field] : old.at, value)
    },
  })
}
