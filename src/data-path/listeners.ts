// What one IP family is served with: a pool for each list of backends, and where its listeners are.

import { KernelError, messageOf } from '../lib/errors.ts'
import { type Family, joinHostPort } from '../lib/ip.ts'
import { type PortRange, portsFor } from './port-range.ts'
import type { Pool, PoolContents } from './control-pool.ts'
import type { DataPlane } from './data-plane.ts'
import type { SeenAs } from './seen-as.ts'
import { openListener, type OpenListener, type PoolProtocol } from './sockets.ts'

export interface ListenersOptions {
  readonly family: Family
  readonly plane: Pick<DataPlane, 'open'>
  /** undefined: any port. */
  readonly range: PortRange | undefined
  /** The ports among which the kernel chooses, and we when there is no range. */
  readonly ephemeral: PortRange
  /** Ports that are kept for others; a range that was given is ours all the same. */
  readonly reserved?: ReadonlySet<number>
  /** Where file descriptors end that listeners may take; unless given there is no such end. */
  readonly endFd?: () => number
}

/** A list of backends to serve. */
export interface DesiredPool extends PoolContents {
  /** What it is served under; unique. */
  readonly name: string
  readonly protocol: PoolProtocol
  /** Whose addresses its backends are to see. There is a listener for each. */
  readonly seenAs: ReadonlySet<SeenAs>
  /** Where a listener was before, if that is known. */
  readonly preferredPort?: (seenAs: SeenAs) => number | undefined
  /** The one port that will do. */
  readonly port?: number
}

export interface ListenAddress {
  readonly address: string
  readonly port: number
}

/** A list that is served. */
export interface Served {
  readonly pool: Pool
  readonly listeners: Map<SeenAs, ListenAddress & { readonly id: number }>
}

/** Why a listener is not open. */
export interface Refusal {
  readonly reason: string
  /** This process, or the machine, has no file descriptor left for it, nor for others. */
  readonly isShort: boolean
}

/** How many ports are tried before the kernel is asked for one. */
const TRIES_WITHOUT_RANGE = 16

export class Listeners {
  readonly #options: ListenersOptions
  #byName = new Map<string, Served>()
  /** Where listeners are opened. */
  #address = ''
  /** Of listeners on addresses that were left. */
  readonly #leftPorts = new Set<number>()
  /**
   * Those for which no port was left. To find that out takes system calls for each port of the range; to do so for each of
   * many services would keep this process from all else.
   */
  readonly #usedUp = new Set<PoolProtocol>()
  /** The same for file descriptors, of which the next listener needs one as well. */
  #isShort: Refusal | undefined

  constructor(options: ListenersOptions) {
    this.#options = options
  }

  entries(): IterableIterator<[string, Served]> {
    return this.#byName.entries()
  }

  get(name: string): Served | undefined {
    return this.#byName.get(name)
  }

  find(name: string, seenAs: SeenAs): ListenAddress | undefined {
    return this.#byName.get(name)?.listeners.get(seenAs)
  }

  /** Of all listeners, those on addresses that were left included. */
  ports(): ReadonlySet<number> {
    const listeners = Array.from(this.#byName.values(), (served) => [...served.listeners.values()]).flat()
    return new Set([...this.#leftPorts, ...listeners.map(({ port }) => port)])
  }

  /** Where UDP is served: `ip:port`. */
  udp(): ReadonlySet<string> {
    const served = [...this.#byName.values()].filter(({ pool }) => pool.protocol === 'UDP')
    const listeners = served.flatMap((each) => [...each.listeners.values()])
    return new Set(listeners.map(({ address, port }) => joinHostPort(address, port)))
  }

  /** From now on, listeners are opened on this address. Returns what is served on another one; it is no longer known here. */
  moveTo(address: string): readonly Pool[] {
    if (address === this.#address) return []
    this.#address = address
    for (const port of this.ports()) this.#leftPorts.add(port)
    const left = Array.from(this.#byName.values(), ({ pool }) => pool)
    this.#byName = new Map()
    return left
  }

  /** Serves what is desired, or changes how. Returns the listeners that could not be opened, and why. */
  serve(desired: DesiredPool): ReadonlyMap<SeenAs, Refusal> {
    const { name, protocol, backends, affinitySeconds } = desired
    const { family, plane } = this.#options
    let served = this.#byName.get(name)
    if (served !== undefined) served.pool.update({ backends, affinitySeconds })
    else {
      served = { pool: plane.open({ family, protocol, backends, affinitySeconds }), listeners: new Map() }
      this.#byName.set(name, served)
    }
    return this.#openListeners(served, desired)
  }

  /** Another program may have let go of a port. */
  lookForPorts(): void {
    this.#usedUp.clear()
    this.lookForFds()
  }

  /** A client may have let go of a file descriptor, or the limit was raised. To find out takes one system call. */
  lookForFds(): void {
    this.#isShort = undefined
  }

  /** Shuts the listeners that are not desired any more; without any, the list is no longer served. */
  keep(name: string, seenAs: ReadonlySet<SeenAs>): void {
    const served = this.#byName.get(name)
    if (served === undefined) return
    for (const [each, { id }] of served.listeners) {
      if (seenAs.has(each)) continue
      served.pool.shut(id)
      served.listeners.delete(each)
      this.lookForPorts()
    }
    if (seenAs.size > 0) return
    served.pool.close()
    this.#byName.delete(name)
  }

  releaseAll(): void {
    for (const name of this.#byName.keys()) this.keep(name, NO_LISTENER)
  }

  #openListeners(served: Served, desired: DesiredPool): ReadonlyMap<SeenAs, Refusal> {
    const refused = new Map<SeenAs, Refusal>()
    const address = this.#address
    for (const seenAs of desired.seenAs) {
      if (served.listeners.has(seenAs)) continue
      const opened = this.#open(desired, seenAs)
      if ('reason' in opened) {
        refused.set(seenAs, opened)
        continue
      }
      const id = served.pool.listen({ fd: opened.fd, seenAs, address })
      served.listeners.set(seenAs, { id, address, port: opened.port })
    }
    return refused
  }

  /** The listener, or why there is none. */
  #open(desired: DesiredPool, seenAs: SeenAs): OpenListener | Refusal {
    if (this.#isShort !== undefined) return this.#isShort
    const { family, range, endFd } = this.#options
    const { protocol, port: only } = desired
    const options = { family, protocol, address: this.#address, endFd: endFd?.() }
    const reason = range === undefined ? 'no port is free' : `no port of the range ${range.first}-${range.last} is free`
    const noneIsFree = { reason, isShort: false }
    if (only === undefined && this.#usedUp.has(protocol)) return noneIsFree
    try {
      if (only !== undefined) {
        const taken = { reason: `another program has ${joinHostPort(this.#address, only)}/${protocol}`, isShort: false }
        return openListener({ ...options, port: only }) ?? taken
      }
      for (const port of this.#candidates(`${desired.name} ${seenAs}`, desired.preferredPort?.(seenAs))) {
        const opened = openListener({ ...options, port })
        if (opened !== undefined) return opened
      }
      this.#usedUp.add(protocol)
      return noneIsFree
    } catch (error) {
      const isShort = error instanceof KernelError && (error.errno === 'EMFILE' || error.errno === 'ENFILE')
      const refusal = { reason: messageOf(error), isShort }
      if (isShort) this.#isShort = refusal
      return refusal
    }
  }

  *#candidates(name: string, preferred: number | undefined): Generator<number> {
    const { range, ephemeral, reserved } = this.#options
    const { first, last } = range ?? { first: 1, last: 65_535 }
    if (preferred !== undefined && preferred >= first && preferred <= last) yield preferred
    if (range !== undefined) {
      yield* portsFor(name, range)
      return
    }
    let tries = TRIES_WITHOUT_RANGE
    for (const port of portsFor(name, ephemeral)) {
      if (reserved?.has(port) === true) continue
      if (tries-- === 0) break
      yield port
    }
    yield 0
  }
}

const NO_LISTENER: ReadonlySet<SeenAs> = new Set()
