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
    single('gauge', 'process_max_fds', 'Maximum number of open file descriptors.', readMaxFds),
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

function readMaxFds(): number {
  const soft = /^Max open files\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1]
  return soft === 'unlimited' ? Infinity : Number(soft)
}
