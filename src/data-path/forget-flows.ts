// Deletes the connection tracker's entries of UDP flows to listeners that are closed. With such an entry, datagrams would go there
// for as long as the client sends; without it, the next datagram follows the rules.

import { conntrackFlows } from '../conntrack/driver.ts'
import { type Family, joinHostPort } from '../lib/ip.ts'

/** `ip:port` of the listeners. */
export async function forgetFlows(family: Family, listeners: ReadonlySet<string>): Promise<void> {
  if (listeners.size === 0) return
  const flows = await conntrackFlows.findUdp(family, ({ reply }) => listeners.has(joinHostPort(reply.src, reply.sport)))
  conntrackFlows.delete(flows)
}
