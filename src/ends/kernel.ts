// The kernel's part of ending connections.

import { Conntrack, conntrackFlows } from '../conntrack/driver.ts'
import { splitHostPort } from '../lib/ip.ts'
import type { EndsKernel } from './connection-ender.ts'

const TCP = 6

/** Sockets are opened when they are needed, which is seldom. */
export const endsKernel: EndsKernel = {
  async find(family, isWanted, answerer) {
    using conntrack = new Conntrack()
    const query = { family, protocol: TCP, answerer: answerer === undefined ? undefined : splitHostPort(answerer) }
    return await conntrack.find(query, isWanted)
  },
  forget: (flows) => void conntrackFlows.delete(flows),
  open: async (family) => new (await import('./ending.ts')).Ending(family),
}
