// The connections that IPVS knows, from /proc/net/ip_vs_conn: netlink does not tell them.

import { formatIp, parseIp } from '../lib/ip.ts'
import {
  destinationKey,
  serverKey,
  type DestinationId,
  type DestinationKey,
  type ServerId,
  type ServerKey,
} from './types.ts'

/** States in which a connection cannot carry data any more, though the kernel remembers it for a while. */
const CLOSED: ReadonlySet<string> = new Set(['TIME_WAIT', 'CLOSE', 'CLOSED', 'REJECTED'])

/** How many connections of each destination may still carry data. */
export class OpenConnections {
  readonly #counts = new Map<ServerKey, Map<DestinationKey, number>>()

  /** Takes the text of the file. Lines that it does not understand do not count. */
  constructor(text: string) {
    for (const line of text.split('\n')) this.#add(line.trim().split(/\s+/))
  }

  count(server: ServerId, destination: DestinationId): number {
    return this.#counts.get(serverKey(server))?.get(destinationKey(destination)) ?? 0
  }

  #add([protocol, , clientPort, address, port, destination, destinationPort, state]: readonly string[]): void {
    if (protocol !== 'TCP' && protocol !== 'SCTP') return
    // Without a client's port it is not a connection but what persistence remembers.
    if (state === undefined || CLOSED.has(state) || clientPort === '0000') return
    const server = serverKey({ family: 4, protocol, address: decodeAddress(address), port: parseHex(port) })
    let counts = this.#counts.get(server)
    if (counts === undefined) this.#counts.set(server, (counts = new Map()))
    const key = destinationKey({ address: decodeAddress(destination), port: parseHex(destinationPort) })
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
}

/** Eight hex digits for IPv4, eight groups for IPv6. */
function decodeAddress(text = ''): string {
  const bytes = /^[0-9A-Fa-f]{8}$/.test(text)
    ? String.fromCharCode(...[0, 2, 4, 6].map((i) => parseInt(text.slice(i, i + 2), 16)))
    : parseIp(text)
  return bytes === undefined ? '' : formatIp(bytes)
}

function parseHex(text = ''): number {
  return parseInt(text, 16)
}
