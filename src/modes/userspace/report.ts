// Reports of the userspace mode: its metrics, and its part of /statusz.

import { type Family, joinHostPort } from '../../lib/ip.ts'
import type { BackendStatus } from '../../data-path/control-pool.ts'
import type { Listeners, Served } from '../../data-path/listeners.ts'
import type { CounterName, PoolTotals } from '../../data-path/pool-board.ts'
import type { Metrics } from '../../metrics/metrics.ts'
import { lookedUp } from '../../metrics/registry.ts'

/** Those of each family that is served. */
export type ServedFamilies = readonly (readonly [Family, Listeners])[]

/** Listeners that cannot be opened. */
export type MissingOfFamilies = ReadonlyMap<Family, { readonly count: number }>

const METRICS: readonly { name: string; kind: 'counter' | 'gauge'; counter: CounterName; help: string }[] = [
  {
    name: 'kubeproxyts_userspace_connections_total',
    kind: 'counter',
    counter: 'connections',
    help: 'Connections accepted, and UDP clients seen',
  },
  {
    name: 'kubeproxyts_userspace_active_connections',
    kind: 'gauge',
    counter: 'active',
    help: 'Connections that are open, and UDP clients whose backend is kept',
  },
  {
    name: 'kubeproxyts_userspace_received_bytes_total',
    kind: 'counter',
    counter: 'bytesToBackends',
    help: 'Bytes passed on from clients to backends',
  },
  {
    name: 'kubeproxyts_userspace_sent_bytes_total',
    kind: 'counter',
    counter: 'bytesToClients',
    help: 'Bytes passed on from backends to clients',
  },
  {
    name: 'kubeproxyts_userspace_retries_total',
    kind: 'counter',
    counter: 'retries',
    help: 'Retries with another backend because the one before did not answer',
  },
  {
    name: 'kubeproxyts_userspace_backend_failures_total',
    kind: 'counter',
    counter: 'failures',
    help: 'Attempts to reach a backend that failed',
  },
  {
    name: 'kubeproxyts_userspace_unserved_total',
    kind: 'counter',
    counter: 'unserved',
    help: 'Clients turned away because no backend answered',
  },
]

/** Registers the metrics of the mode, by service port: those that had a client. A cluster has thousands that had none. */
export function registerUserspaceMetrics(metrics: Metrics, served: ServedFamilies, missing: MissingOfFamilies): void {
  const labels = ['ip_family', 'service_port'] as const
  let used: readonly UsedPort[] = []
  metrics.beforePage(() => void (used = [...usedPorts(served)]))
  const perPort = (read: (port: UsedPort) => number) => used.map((port) => [port.labels, read(port)] as const)
  metrics.register(
    ...METRICS.map(({ name, kind, counter, help }) =>
      lookedUp(kind, { name, help, labels }, () => perPort(({ totals }) => totals[counter])),
    ),
    lookedUp(
      'gauge',
      {
        name: 'kubeproxyts_userspace_resting_backends',
        help: 'Backends that get no connections for a while because they did not answer',
        labels,
      },
      () => perPort(({ resting }) => resting),
    ),
    lookedUp(
      'gauge',
      {
        name: 'kubeproxyts_userspace_closed_listeners',
        help: 'Listeners that are not open for lack of file descriptors: clients of their services are refused',
        labels: ['ip_family'],
      },
      () => Array.from(missing, ([family, { count }]) => [[`IPv${family}`], count] as const),
    ),
  )
}

interface UsedPort {
  readonly labels: readonly [ipFamily: string, servicePort: string]
  readonly totals: PoolTotals
  readonly resting: number
}

function* usedPorts(served: ServedFamilies): Generator<UsedPort> {
  for (const [family, listeners] of served) {
    for (const [name, { pool }] of listeners.entries()) {
      const totals = pool.totals()
      if (totals.connections === 0) continue
      yield { labels: [`IPv${family}`, name], totals, resting: pool.backends().filter(isResting).length }
    }
  }
}

/** For people: every service port, where it is served, and which backends have failed. */
export function formatUserspaceStatus(served: ServedFamilies, missing: MissingOfFamilies): string {
  const lines = served.flatMap(([, listeners]) => {
    const lists = [...listeners.entries()].sort(([a], [b]) => (a < b ? -1 : 1))
    return lists.flatMap(([name, list]) => formatList(name, list))
  })
  const short = Array.from(missing).flatMap(([family, { count }]) =>
    count === 0
      ? []
      : [`  IPv${family}: ${count} listeners are missing, because too many files are open: raise the limit`],
  )
  return ['Userspace proxy:', ...short, ...lines].join('\n')
}

/** Those that did not answer the last time. */
export function failingBackends(listeners: Listeners): BackendStatus[] {
  return Array.from(listeners.entries()).flatMap(([, { pool }]) =>
    pool.backends().filter(({ failures }) => failures > 0),
  )
}

function formatList(name: string, { pool, listeners }: Served): string[] {
  const where = Array.from(listeners, ([seenAs, { address, port }]) => `${joinHostPort(address, port)} as ${seenAs}`)
  const failed = pool.backends().filter(({ failures }) => failures > 0)
  return [
    `  ${name} (${where.join(', ')}): backends=${pool.backends().length} ${formatTotals(pool.totals())}`,
    ...failed.map((backend) => `    ${formatFailed(backend)}`),
  ]
}

function formatTotals(totals: PoolTotals): string {
  return Object.entries(totals)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ')
}

function formatFailed({ ip, port, failures, restsForMs }: BackendStatus): string {
  const rest = restsForMs > 0 ? `left alone for ${(restsForMs / 1000).toFixed(1)}s` : 'to be tried again'
  return `${joinHostPort(ip, port)}: failures=${failures}, ${rest}`
}

function isResting({ failures, restsForMs }: BackendStatus): boolean {
  return failures > 0 && restsForMs > 0
}
