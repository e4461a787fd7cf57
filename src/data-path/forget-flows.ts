// Deletes the connection tracker's entries of UDP flows to listeners that are closed. With such an entry, datagrams would go there
// for as long as the client sends; without it, the next datagram follows the rules.

import { Conntrack, type Flow } from '../conntrack/driver.ts'
import { type Family, joinHostPort } from '../lib/ip.ts'

const UDP = 17

/** `ip:port` of the listeners. */
export async function forgetFlows(family: Family, listeners: ReadonlySet<string>): Promise<void> {
  if (listeners.size === 0) return
  using conntrack = new Conntrack()
  const isLed = ({ reply }: Flow) => listeners.has(joinHostPort(reply.src, reply.sport))
  conntrack.delete(await conntrack.find({ family, protocol: UDP }, isLed))
}
