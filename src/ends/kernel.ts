// The kernel's part of ending connections. Sockets are opened when they are needed, which is seldom.

import { conntrackFlows } from '../conntrack/driver.ts'
import type { EndsKernel } from './connection-ender.ts'

export const endsKernel: EndsKernel = {
  find: conntrackFlows.findTcp,
  forget: (flows) => void conntrackFlows.delete(flows),
  open: async (family) => new (await import('./ending.ts')).Ending(family),
}
