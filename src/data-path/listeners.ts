// The pools of one IP family, one for each list of backends, and the addresses of their listeners.

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
  /** The kernel's own range, used when there is no other. */
  readonly ephemeral: PortRange
  /** Ports that the operator keeps for other programs. They do not limit `range`. */
  readonly reserved?: ReadonlySet<number>
  /** Listeners take only file descriptors below this one. */
  readonly endFd?: () => number
  /** How many listeners the families have together: they share the file descriptors. */
  readonly total?: { open: number }
}

/** A list of backends to serve. */
export interface DesiredPool extends PoolContents {
  /** Unique. */
  readonly name: string
  /** The service, which gets no more than its share of listeners. Absent: it has few. */
  readonly service?: string
  readonly protocol: PoolProtocol
  /** Whose addresses its backends see: one listener for each. */
  readonly seenAs: ReadonlySet<SeenAs>
  /** The port of an earlier listener. */
  readonly preferredPort?: (seenAs: SeenAs) => number | undefined
  /** The only acceptable port. */
  readonly port?: number
}

export interface ListenAddress {
  readonly address: string
  readonly port: number
}

/** A pool with its listeners. */
export interface Served {
  readonly service: string | undefined
  readonly pool: Pool
  readonly listeners: Map<SeenAs, ListenAddress & { readonly id: number }>
}

/** Why a listener is not open. */
export interface Refusal {
  readonly reason: string
  /**
   * `fds`: this process, or the machine, has no file descriptor left for any listener. `ports`: there is no free port, or the only
   * one is taken. `share`: the service has as many listeners as one may have.
   */
  readonly lacks: 'fds' | 'ports' | 'share'
}

/** Any service may have so many listeners. */
const FEW = 64

/** So many ports are tried before the kernel chooses one. */
const TRIES_WITHOUT_RANGE = 16

export class Listeners {
  readonly #options: ListenersOptions
  #byName = new Map<string, Served>()
  /** New listeners open on this address. */
  #address = ''
  /** Ports of listeners on earlier addresses. */
  readonly #leftPorts = new Set<number>()
  /**
   * Protocols without a free port. Finding that out takes system calls for each port of the range, too many to repeat for each
   * service.
   */
  readonly #usedUp = new Set<PoolProtocol>()
  /** Set while there are no file descriptors. */
  #isShort: Refusal | undefined
  /** How many listeners each service has. */
  readonly #shares = new Map<string, number>()
  #open = 0

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

  /** Of all listeners, also on earlier addresses. */
  ports(): ReadonlySet<number> {
    const listeners = Array.from(this.#byName.values(), (served) => [...served.listeners.values()]).flat()
    return new Set([...this.#leftPorts, ...listeners.map(({ port }) => port)])
  }

  /** `ip:port` of the UDP listeners. */
  udp(): ReadonlySet<string> {
    const served = [...this.#byName.values()].filter(({ pool }) => pool.protocol === 'UDP')
    const listeners = served.flatMap((each) => [...each.listeners.values()])
    return new Set(listeners.map(({ address, port }) => joinHostPort(address, port)))
  }

  /** Opens listeners on this address from now on. Returns the pools on the earlier one, which the caller must close. */
  moveTo(address: string): readonly Pool[] {
    if (address === this.#address) return []
    this.#address = address
    for (const port of this.ports()) this.#leftPorts.add(port)
    const left = Array.from(this.#byName.values(), ({ pool }) => pool)
    this.#byName = new Map()
    this.#shares.clear()
    this.#countOpen(-this.#open)
    return left
  }

  /** Opens or updates a pool. Returns the listeners that could not be opened, and why. */
  serve(desired: DesiredPool): ReadonlyMap<SeenAs, Refusal> {
    const { name, service, protocol, backends, affinitySeconds, hashBy } = desired
    const { family, plane } = this.#options
    let served = this.#byName.get(name)
    if (served !== undefined) served.pool.update({ backends, affinitySeconds, hashBy })
    else {
      const full = this.#shareIsFull(service)
      if (full !== undefined) return new Map(Array.from(desired.seenAs, (each) => [each, full]))
      served = {
        service,
        pool: plane.open({ family, protocol, backends, affinitySeconds, hashBy }),
        listeners: new Map(),
      }
      this.#byName.set(name, served)
    }
    return this.#openListeners(served, desired)
  }

  /** Another program may have closed a port. */
  lookForPorts(): void {
    this.#usedUp.clear()
    this.lookForFds()
  }

  /** There may be file descriptors again. Trying takes one system call. */
  lookForFds(): void {
    this.#isShort = undefined
  }

  /** Closes the other listeners; without any, the pool too. */
  keep(name: string, seenAs: ReadonlySet<SeenAs>): void {
    const served = this.#byName.get(name)
    if (served === undefined) return
    for (const [each, { id }] of served.listeners) {
      if (seenAs.has(each)) continue
      served.pool.shut(id)
      served.listeners.delete(each)
      this.#count(served.service, -1)
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
      const opened = this.#openListener(desired, seenAs)
      if ('reason' in opened) {
        refused.set(seenAs, opened)
        continue
      }
      const id = served.pool.listen({ fd: opened.fd, seenAs, address })
      served.listeners.set(seenAs, { id, address, port: opened.port })
      this.#count(served.service, 1)
    }
    return refused
  }

  #countOpen(change: number): void {
    this.#open += change
    if (this.#options.total !== undefined) this.#options.total.open += change
  }

  #count(service: string | undefined, change: 1 | -1): void {
    this.#countOpen(change)
    if (service === undefined) return
    const share = (this.#shares.get(service) ?? 0) + change
    if (share === 0) this.#shares.delete(service)
    else this.#shares.set(service, share)
  }

  /**
   * Set when the service has as many as are left, so that no object, however many ports it names, takes the room of all others, or
   * every port at which connections of this node begin.
   */
  #shareIsFull(service: string | undefined): Refusal | undefined {
    const share = service === undefined ? 0 : (this.#shares.get(service) ?? 0)
    if (share < FEW) return undefined
    const { range, ephemeral, endFd, total } = this.#options
    const { first, last } = range ?? ephemeral
    const ports = last - first + 1 - this.#open
    const fds = (endFd?.() ?? Infinity) - (total?.open ?? this.#open)
    if (share < Math.min(ports, fds)) return undefined
    return { reason: `its Service has ${share} listeners already, as many as are left for others`, lacks: 'share' }
  }

  /** The listener, or the reason why there is none. */
  #openListener(desired: DesiredPool, seenAs: SeenAs): OpenListener | Refusal {
    if (this.#isShort !== undefined) return this.#isShort
    const full = this.#shareIsFull(desired.service)
    if (full !== undefined) return full
    const { family, range, endFd } = this.#options
    const { protocol, port: only } = desired
    const options = { family, protocol, address: this.#address, endFd: endFd?.() }
    const reason = range === undefined ? 'no port is free' : `no port of the range ${range.first}-${range.last} is free`
    const noneIsFree: Refusal = { reason, lacks: 'ports' }
    if (only === undefined && this.#usedUp.has(protocol)) return noneIsFree
    try {
      if (only !== undefined) {
        const reason = `another program has ${joinHostPort(this.#address, only)}/${protocol}`
        return openListener({ ...options, port: only }) ?? { reason, lacks: 'ports' }
      }
      for (const port of this.#candidates(`${desired.name} ${seenAs}`, desired.preferredPort?.(seenAs))) {
        const opened = openListener({ ...options, port })
        if (opened !== undefined) return opened
      }
      this.#usedUp.add(protocol)
      return noneIsFree
    } catch (error) {
      const isShort = error instanceof KernelError && (error.errno === 'EMFILE' || error.errno === 'ENFILE')
      const refusal: Refusal = { reason: messageOf(error), lacks: isShort ? 'fds' : 'ports' }
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
