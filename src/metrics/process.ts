// What every Prometheus client says about its process, under the names that dashboards use.

import { readdirSync, readFileSync } from 'node:fs'
import { lookedUp, type Printable, type Stability } from './registry.ts'

/** When this process started, in seconds since 1970. */
export const processStartSeconds: number = performance.timeOrigin / 1000

/** The metrics about this process. Read at each scrape: about 0.1 ms in all. */
export function processMetrics(): Printable[] {
  return [
    processStartTime(),
    single('counter', 'process_cpu_seconds_total', 'Total user and system CPU time spent in seconds.', () => {
      const { user, system } = process.cpuUsage()
      return (user + system) / 1e6
    }),
    single('gauge', 'process_resident_memory_bytes', 'Resident memory size in bytes.', () => process.memoryUsage.rss()),
    single('gauge', 'process_virtual_memory_bytes', 'Virtual memory size in bytes.', readVirtualMemory),
    single(
      'gauge',
      'process_open_fds',
      'Number of open file descriptors.',
      () => readdirSync('/proc/self/fd').length - 1,
    ),
    single('gauge', 'process_max_fds', 'Maximum number of open file descriptors.', () => readLimit('Max open files')),
    single('gauge', 'process_virtual_memory_max_bytes', 'Maximum amount of virtual memory available in bytes.', () =>
      readLimit('Max address space'),
    ),
    // As Go's client, and not quite as its texts: it is what the network namespace of the process received and sent.
    single(
      'counter',
      'process_network_receive_bytes_total',
      'Number of bytes received by the process over the network.',
      () => readOctets('InOctets'),
    ),
    single(
      'counter',
      'process_network_transmit_bytes_total',
      'Number of bytes sent by the process over the network.',
      () => readOctets('OutOctets'),
    ),
    single('gauge', 'nodejs_heap_size_used_bytes', 'Memory that live and dead JavaScript objects take.', () => {
      return process.memoryUsage().heapUsed
    }),
    single('gauge', 'nodejs_external_memory_bytes', 'Memory that JavaScript objects hold outside of the heap.', () => {
      return process.memoryUsage().external
    }),
  ]
}

/** process_start_time_seconds, which stands on the SLI page too, there with a stability. */
export function processStartTime(stability?: Stability): Printable {
  return lookedUp(
    'gauge',
    {
      name: 'process_start_time_seconds',
      help: 'Start time of the process since unix epoch in seconds.',
      labels: [],
      ...(stability === undefined ? {} : { stability }),
    },
    () => [[[], processStartSeconds]],
  )
}

function single(kind: 'counter' | 'gauge', name: string, help: string, read: () => number): Printable {
  return lookedUp(kind, { name, help, labels: [] }, () => [[[], read()]])
}

function readVirtualMemory(): number {
  // Field 23 of /proc/self/stat; the second field is a name in parentheses that may contain anything.
  const stat = readFileSync('/proc/self/stat', 'latin1')
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[20])
}

function readLimit(name: string): number {
  const soft = new RegExp(`^${name}\\s+(\\S+)`, 'm').exec(readFileSync('/proc/self/limits', 'latin1'))?.[1]
  // What Go makes of no limit: the largest number of 64 bits.
  return soft === 'unlimited' ? 2 ** 64 : Number(soft)
}

/** Of IPv4, as the kernel counts them; throws where it does not. */
function readOctets(name: string): number {
  const [names = '', values = ''] = readFileSync('/proc/self/net/netstat', 'latin1').match(/^IpExt: .*/gm) ?? []
  const at = names.split(' ').indexOf(name)
  if (at < 0) throw new Error(`Cannot read ${name}: /proc/self/net/netstat does not have it`)
  return Number(values.split(' ')[at])
}
