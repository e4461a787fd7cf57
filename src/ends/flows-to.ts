// Which connections of the tracker belong to a service port.

import { joinHostPort } from '../lib/ip.ts'
import type { Flow } from '../conntrack/driver.ts'
import type { ServicePortView } from '../model/types.ts'

/** Whether a connection was sent to an endpoint by this service port, at one of its addresses or its node port. */
export function flowsTo(
  { frontends }: ServicePortView,
  isNodePortAddress: (address: string) => boolean,
): (flow: Flow) => boolean {
  const dialled = new Set(
    frontends.flatMap(({ address, port }) => (address === undefined ? [] : joinHostPort(address, port))),
  )
  const nodePorts = new Set(frontends.flatMap(({ address, port }) => (address === undefined ? port : [])))
  return ({ original, reply }) => {
    const isTranslated = reply.src !== original.dst || reply.sport !== original.dport
    if (!isTranslated) return false
    if (dialled.has(joinHostPort(original.dst, original.dport))) return true
    return nodePorts.has(original.dport) && isNodePortAddress(original.dst)
  }
}
