// How much longer than on a machine of its own something may take. User Mode Linux has one slow processor for the program,
// the API server, all clients and all servers; elsewhere it is as many times longer as there are programs for a processor.

import { availableParallelism, loadavg } from 'node:os'

const LONGEST = 5

export const patience = process.env['UML'] === undefined ? byLoad() : LONGEST

function byLoad(): number {
  const [load = 0] = loadavg()
  return Math.min(LONGEST, Math.max(1, Math.round(load / availableParallelism())))
}
