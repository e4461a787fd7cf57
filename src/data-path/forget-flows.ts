// UDP flows that were led to a listener which is closed. The connection tracker would lead them there for as long as their clients
// send; without its entry, the next datagram goes by the rules that are there.

import { Conntrack, type Flow } from '../conntrack/driver.ts'
import { type Family, joinHostPort } from '../lib/ip.ts'

const UDP = 17

/** `ip:port` of the listeners. */
export async function forgetFlows(family: Family, listeners: ReadonlySet<string>): Promise<void> {
  if (listeners.size === 0) return
  const conntrack = new Conntrack()
  try {
    const isLed = ({ reply }: Flow) => listeners.has(joinHostPort(reply.src, reply.sport))
    conntrack.delete(await conntrack.find({ family, protocol: UDP }, isLed))
  } finally {
    conntrack.close()
  }
}
