// The ports at which connections to backends begin, when their source is to be replaced. All threads share them.

import type { PortRange } from './port-range.ts'

const PORTS = 65_536
/** How many ports in a row are looked at to find one that is free, and in how many places. */
const LOOKS = 64
const PLACES = 8
/** In place of a number of users: the operator keeps the port for other programs. */
const RESERVED = -1

export interface SourcePort {
  readonly port: number
  /** No other connection uses it. Otherwise it can serve again for another backend. */
  readonly isExclusive: boolean
}

export class SourcePorts {
  /** How many connections use each port. */
  readonly #users: Int32Array
  /** To which backend the last connection from each port went, as a hash; 0: to none. */
  readonly #backends: Int32Array
  readonly #range: PortRange
  #next: number

  constructor(memory: SharedArrayBuffer, range: PortRange) {
    this.#users = new Int32Array(memory, 0, PORTS)
    this.#backends = new Int32Array(memory, PORTS * Int32Array.BYTES_PER_ELEMENT, PORTS)
    this.#range = range
    this.#next = this.#anyPort()
  }

  /** Reserved ports are never taken. */
  static createMemory(reserved: Iterable<number> = []): SharedArrayBuffer {
    const memory = new SharedArrayBuffer(2 * PORTS * Int32Array.BYTES_PER_ELEMENT)
    const users = new Int32Array(memory, 0, PORTS)
    for (const port of reserved) users[port] = RESERVED
    return memory
  }

  /**
   * A free port, as a rule the one whose last use is longest ago; if none is found, one in use; undefined if all are reserved.
   */
  take(): SourcePort | undefined {
    for (let places = PLACES; places > 0; places--) {
      for (let looks = LOOKS; looks > 0; looks--) {
        const port = this.#step()
        if (Atomics.compareExchange(this.#users, port, 0, 1) === 0) return { port, isExclusive: true }
      }
      // Thousands in a row may be in use: those of another thread, of connections that stay.
      this.goElsewhere()
    }
    for (let looks = this.#range.last - this.#range.first + 1; looks > 0; looks--) {
      const port = this.#step()
      if (this.#users[port] === RESERVED) continue
      Atomics.add(this.#users, port, 1)
      return { port, isExclusive: false }
    }
    return undefined
  }

  /** Takes the next port from another part of the range. */
  goElsewhere(): void {
    this.#next = this.#anyPort()
  }

  giveBack(port: number): void {
    Atomics.sub(this.#users, port, 1)
  }

  /** A connection to this backend begins at the port. */
  noteBackend(port: number, backend: Uint8Array): void {
    this.#backends[port] = hashOf(backend)
  }

  /** Whether the last connection that began there went to this backend. */
  hasServed(port: number, backend: Uint8Array): boolean {
    return this.#backends[port] === hashOf(backend)
  }

  #anyPort(): number {
    const { first, last } = this.#range
    return first + Math.floor(Math.random() * (last - first + 1))
  }

  #step(): number {
    const port = this.#next
    this.#next = port >= this.#range.last ? this.#range.first : port + 1
    return port
  }
}

/** FNV-1a, and never 0. */
function hashOf(bytes: Uint8Array): number {
  let hash = 0x811c9dc5
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193)
  return hash | 1
}
