// Whether another program added or removed virtual servers or destinations. IPVS sends no notifications, but its table is one
// file, /proc/net/ip_vs, and counting its lines is cheap.

import type { Family } from '../lib/ip.ts'
import { serverKey, type IpvsOp, type ServerKey, type ServerState } from './types.ts'

export interface Counts {
  readonly servers: number
  readonly destinations: number
}

/** What should be in the table, of one family. */
export class IpvsAudit {
  /** How many destinations each server has: they go with it. */
  readonly #servers = new Map<ServerKey, number>()
  #destinations = 0
  /** What the table had more or less than it should when it was looked at last: that was reported, and is not reported again. */
  #reported: Counts = { servers: 0, destinations: 0 }

  /** Everything was read from the kernel. What is done about it comes by note(). */
  reset(actual: Iterable<ServerState>): void {
    this.#servers.clear()
    this.#destinations = 0
    for (const { server, destinations } of actual) {
      this.#servers.set(serverKey(server), destinations.length)
      this.#destinations += destinations.length
    }
  }

  /** Follows what we do ourselves. */
  note(ops: readonly IpvsOp[]): void {
    for (const { op, server } of ops) {
      const key = serverKey(server)
      const destinations = this.#servers.get(key) ?? 0
      if (op === 'addServer') this.#servers.set(key, 0)
      if (op === 'addDestination') this.#count(key, destinations, 1)
      if (op === 'deleteDestination') this.#count(key, destinations, -1)
      if (op === 'deleteServer') {
        this.#servers.delete(key)
        this.#destinations -= destinations
      }
    }
  }

  /** Looks at what is in the table. False: it is not as we left it, and that is news. */
  check(actual: Counts): boolean {
    const servers = actual.servers - this.#servers.size
    const destinations = actual.destinations - this.#destinations
    const isRight = servers === 0 && destinations === 0
    const isKnown = servers === this.#reported.servers && destinations === this.#reported.destinations
    this.#reported = { servers, destinations }
    return isRight || isKnown
  }

  #count(server: ServerKey, destinations: number, delta: 1 | -1): void {
    this.#servers.set(server, destinations + delta)
    this.#destinations += delta
  }
}

/** Counts the lines of /proc/net/ip_vs, which come in pieces. Virtual servers by firewall mark are never ours and do not count. */
export class TableCounter {
  readonly #counts = { 4: { servers: 0, destinations: 0 }, 6: { servers: 0, destinations: 0 } }
  /** The family of the server whose destinations come. */
  #family: Family | undefined
  /** The begin of a line whose end is in the next piece. */
  #begun = ''

  add(piece: string): void {
    const text = this.#begun + piece
    let start = 0
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', start)) {
      this.#addLine(text, start)
      start = end + 1
    }
    this.#begun = text.slice(start)
  }

  counts(family: Family): Counts {
    return { ...this.#counts[family] }
  }

  /** `TCP  0A600001:0050 rr`, `SCTP  [fd02:...]:0050 rr`, and below it `  -> 0A400001:1F90      Masq    1      0          0`. */
  #addLine(text: string, start: number): void {
    if (text.startsWith('  -> ', start)) {
      if (this.#family !== undefined) this.#counts[this.#family].destinations++
      return
    }
    this.#family = undefined
    const protocol = PROTOCOLS.find((name) => text.startsWith(name, start))
    if (protocol === undefined) return
    this.#family = text.charAt(start + protocol.length) === '[' ? 6 : 4
    this.#counts[this.#family].servers++
  }
}

/** The begin of a line, up to the address. */
const PROTOCOLS = ['TCP  ', 'UDP  ', 'SCTP  ']
