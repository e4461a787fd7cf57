// The connections that IPVS knows, from /proc/net/ip_vs_conn: netlink does not list them.

import { ipBytes } from '../lib/ip.ts'
import type { DestinationId, ServerId } from './types.ts'

/** States in which a connection cannot carry data any more, though the kernel remembers it for a while. */
const CLOSED: ReadonlySet<string> = new Set(['TIME_WAIT', 'CLOSE', 'CLOSED', 'REJECTED'])

/**
 * How many connections of some destinations may still carry data. The file has a line for each connection of the machine:
 * it is taken piece by piece, and of a line no more is looked at than it takes.
 */
export class OpenConnections {
  readonly #counts = new Map<string, number>()
  /** The begin of a line whose end is in the next piece. */
  #begun = ''

  constructor(wanted: Iterable<{ readonly server: ServerId; readonly destination: DestinationId }>) {
    for (const { server, destination } of wanted) this.#counts.set(keyOf(server, destination), 0)
  }

  /** The next piece of the file. Lines that it does not understand do not count. */
  add(piece: string): void {
    const text = this.#begun + piece
    let start = 0
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', start)) {
      this.#addLine(text, start, end)
      start = end + 1
    }
    this.#begun = text.slice(start)
  }

  /** Undefined: it was not among those wanted. */
  count(server: ServerId, destination: DestinationId): number | undefined {
    return this.#counts.get(keyOf(server, destination))
  }

  /** `TCP 0A01000B 2CD5 0A0201B0 0050 0A01000C 1F90 ESTABLISHED     899`, with one space between fields up to the state. */
  #addLine(text: string, start: number, end: number): void {
    const protocolEnd = text.indexOf(' ', start)
    const clientEnd = text.indexOf(' ', protocolEnd + 1)
    const portEnd = text.indexOf(' ', clientEnd + 1)
    if (protocolEnd === -1 || clientEnd === -1 || portEnd === -1 || portEnd >= end) return
    let at = portEnd
    for (let field = 0; field < 4; field++) {
      at = text.indexOf(' ', at + 1)
      if (at === -1 || at >= end) return
    }
    const key = text.slice(start, protocolEnd) + text.slice(portEnd, at)
    const count = this.#counts.get(key)
    if (count === undefined) return
    const stateEnd = text.indexOf(' ', at + 1)
    const state = text.slice(at + 1, stateEnd === -1 || stateEnd > end ? end : stateEnd)
    // Without a client's port it is not a connection but what persistence remembers.
    if (CLOSED.has(state) || text.slice(clientEnd + 1, portEnd) === '0000') return
    this.#counts.set(key, count + 1)
  }
}

/** As the kernel prints it: `TCP 0A0201B0 0050 0A01000C 1F90`. */
function keyOf(server: ServerId, destination: DestinationId): string {
  return `${server.protocol} ${formatPlace(server)} ${formatPlace(destination)}`
}

/** Eight hex digits for IPv4, in capitals; eight groups of four for IPv6, in small letters. */
function formatPlace({ address, port }: DestinationId): string {
  const digits = Array.from(ipBytes(address), (char) => hex(char.charCodeAt(0), 2)).join('')
  const printed = digits.length === 8 ? digits.toUpperCase() : digits.replace(/.{4}(?=.)/g, '$&:')
  return `${printed} ${hex(port, 4).toUpperCase()}`
}

function hex(number: number, digits: number): string {
  return number.toString(16).padStart(digits, '0')
}
