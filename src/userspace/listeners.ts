// The listeners of one IP family: which pool listens where.

import { messageOf } from '../lib/errors.ts'
import type { Family } from '../lib/ip.ts'
import type { PortRange } from '../lib/port-range.ts'
import { portsFor } from '../lib/port-range.ts'
import type { DataPlane, Pool, PoolContents } from './data-plane.ts'
import { openListener, type OpenListener, type PoolProtocol } from './sockets.ts'

export interface ListenersOptions {
  readonly family: Family
  readonly plane: DataPlane
  /** undefined: any port. */
  readonly range: PortRange | undefined
  /** The ports among which the kernel chooses, and we when there is no range. */
  readonly ephemeral: PortRange
}

/** Something to serve. */
export interface Wanted extends PoolContents {
  /** What it is served under; unique. */
  readonly name: string
  readonly protocol: PoolProtocol
  /** Where it was served before, if that is known. */
  readonly preferredPort: number | undefined
}

export interface Listener {
  readonly address: string
  readonly port: number
  readonly pool: Pool
}

/** How many ports are tried before the kernel is asked for one. */
const TRIES_WITHOUT_RANGE = 16

export class Listeners {
  readonly #options: ListenersOptions
  readonly #byName = new Map<string, Listener>()
  /** Where listeners are opened. */
  #address = ''

  constructor(options: ListenersOptions) {
    this.#options = options
  }

  entries(): IterableIterator<[string, Listener]> {
    return this.#byName.entries()
  }

  find(name: string): Listener | undefined {
    return this.#byName.get(name)
  }

  /** From now on, listeners are opened on this address; those on another one are returned, and no longer known. */
  moveTo(address: string): Map<string, Listener> {
    const left = new Map<string, Listener>()
    if (address === this.#address) return left
    this.#address = address
    for (const [name, listener] of this.#byName) left.set(name, listener)
    this.#byName.clear()
    return left
  }

  /** Serves what is wanted, as it is or as it changes; returns the reason when that cannot be. */
  serve(wanted: Wanted): string | undefined {
    const { name, backends, affinitySeconds } = wanted
    const existing = this.#byName.get(name)
    if (existing !== undefined) {
      existing.pool.update({ backends, affinitySeconds })
      return undefined
    }
    const opened = this.#open(wanted)
    if (typeof opened === 'string') return opened
    const { protocol } = wanted
    const { family, plane } = this.#options
    const pool = plane.open({ family, protocol, fds: opened.fds, backends, affinitySeconds })
    this.#byName.set(name, { address: this.#address, port: opened.port, pool })
    return undefined
  }

  /** Listens no longer. */
  release(name: string): void {
    this.#byName.get(name)?.pool.close()
    this.#byName.delete(name)
  }

  releaseAll(): void {
    for (const name of this.#byName.keys()) this.release(name)
  }

  /** The listener, or why there is none. */
  #open(wanted: Wanted): OpenListener | string {
    const { range } = this.#options
    try {
      for (const port of this.#candidates(wanted)) {
        const opened = this.#listen(port, wanted.protocol)
        if (opened !== undefined) return opened
      }
      return range === undefined ? 'no port is free' : `no port of the range ${range.first}-${range.last} is free`
    } catch (error) {
      return messageOf(error)
    }
  }

  *#candidates({ name, preferredPort }: Wanted): Generator<number> {
    const { range, ephemeral } = this.#options
    const { first, last } = range ?? { first: 1, last: 65_535 }
    if (preferredPort !== undefined && preferredPort >= first && preferredPort <= last) yield preferredPort
    if (range !== undefined) {
      yield* portsFor(name, range)
      return
    }
    let tries = TRIES_WITHOUT_RANGE
    for (const port of portsFor(name, ephemeral)) {
      if (tries-- === 0) break
      yield port
    }
    yield 0
  }

  #listen(port: number, protocol: PoolProtocol): OpenListener | undefined {
    const { family, plane } = this.#options
    return openListener({ family, protocol, address: this.#address, port, sockets: plane.threads })
  }
}
