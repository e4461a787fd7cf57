// How much longer than on an idle machine something may take. Limits are written for an idle machine, and stretched by
// this alone.

import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'

const MOST = 10

/**
 * Asked for whenever a limit is looked at, since the load changes while a test waits. User Mode Linux has one slow
 * processor for the program, the API server, all clients and all servers. Elsewhere it is the number of programs that want
 * a processor, in the last minute or at this moment, for each processor that there is.
 */
export function patience(): number {
  if (process.env['UML'] !== undefined) return MOST
  return patienceFor(readFileSync('/proc/loadavg', 'utf8'), availableParallelism())
}

/** The same, of what /proc/loadavg says: `2.20 1.29 0.55 4/512 1234`, where 4 want a processor now. */
export function patienceFor(loadavg: string, processors: number): number {
  const [lastMinute = '0', , , tasks = '0'] = loadavg.split(' ')
  const wanted = Math.max(Number(lastMinute), Number.parseInt(tasks))
  return Math.min(MOST, Math.max(1, wanted / processors))
}
