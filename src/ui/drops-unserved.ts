// Whether a frontend drops what it does not serve, or refuses it.

import type { PortState } from '../serve/control/port-state.ts'
import { joinHostPort } from '../lib/ip.ts'

/** `frontend` as in a row of the traffic: `tcp 10.0.0.1:80`; `tcp *:30080` for a node port. */
export function dropsUnserved(ports: readonly PortState[], service: string, frontend: string): boolean {
  const where = frontend.slice(frontend.indexOf(' ') + 1)
  // A dual-stack service port is listed twice.
  const found = ports
    .filter(({ name }) => name === service)
    .flatMap(({ frontends }) => frontends)
    .find(({ address, port }) => where === (address === undefined ? `*:${port}` : joinHostPort(address, port)))
  if (found?.fromOthers.verdict.kind === 'to') return found.allowedSources !== undefined
  return found?.fromOthers.verdict.kind === 'drop'
}
