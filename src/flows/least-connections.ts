// Counts the connections that are open to the backends of Services with least connections, while there are such Services: the kernel
// reports connections only while a program listens.

import { readOpen, watchEnds } from '../conntrack/watch-ends.ts'
import type { Clock, Timer } from '../lib/clock.ts'
import { type Family, joinHostPort } from '../lib/ip.ts'
import type { Logger } from '../lib/log.ts'
import { TryAgain } from '../lib/try-again.ts'
import type { NodeView, ServicePortChange, ServicePortName, ServicePortView } from '../model/types.ts'
import { isIdle, type SeenLoads } from '../model/shares.ts'
import { backendKey, type BackendKey, OpenConnections } from './open-connections.ts'

export interface LeastConnectionsOptions {
  /** What was seen of the backends of a service port, by `ip:port`. False when that moves nothing. */
  readonly onLoads: (family: Family, name: ServicePortName, loads: SeenLoads) => boolean
  readonly clock: Clock
  readonly log: Logger
  /** The kernel's part, for tests. */
  readonly kernel?: { readonly watchEnds: typeof watchEnds; readonly readOpen: typeof readOpen }
}

const TICK_MS = 500
/** The table of connections may have hundreds of thousands: so long it is not read again. */
const READ_EVERY_MS = 10_000
/** Of all service ports together: each takes memory, and time with each look. Those of ports beyond are chosen as without this. */
const MOST_BACKENDS = 65_536
const PROTOCOLS = { TCP: 6, UDP: 17, SCTP: 132 } as const

interface Port {
  readonly family: Family
  readonly name: ServicePortName
  /** By `ip:port`. */
  readonly keys: ReadonlyMap<string, BackendKey>
  /** An average in which each look counts half as much as the next one. */
  loads: SeenLoads
  /** Nothing goes on, and all have their whole share. */
  isAtRest: boolean
}

export class LeastConnections {
  readonly #options: LeastConnectionsOptions
  readonly #ports = new Map<string, Port>()
  #watch: { readonly counts: OpenConnections; close(): void } | undefined
  #timer: Timer | undefined
  /** What is open is not all known: from before there was such a Service, or because notifications were lost. */
  #isMissing = false
  #readAgainMs = 0
  #isClosed = false
  /** Of all ports. */
  #backends = 0

  readonly #again: TryAgain

  constructor(options: LeastConnectionsOptions) {
    const { clock, log } = options
    this.#options = options
    this.#again = new TryAgain({
      clock,
      again: () => this.#watchThem(),
      onFailed: (error, againInMs) => log.error(error, 'Cannot count connections', { againInMs }),
      firstMs: TICK_MS,
    })
  }

  /** After a sync. */
  follow({ family }: NodeView, changes: readonly ServicePortChange[]): void {
    let changed = false
    for (const { name, before, after } of changes) {
      const id = `${family} ${name}`
      // Of one backend alone, no share moves.
      if (after?.backends.balance === 'least-connections' && after.backends.length > 1) {
        if (before?.backends === after.backends && this.#ports.has(id)) continue
        const known = this.#drop(id)
        changed ||= known !== undefined
        if (this.#backends + after.backends.length > MOST_BACKENDS) continue
        this.#isMissing ||= known === undefined
        const keys = keysOf(after)
        this.#backends += keys.size
        this.#ports.set(id, { family, name, keys, loads: known?.loads ?? new Map(), isAtRest: false })
        changed = true
      } else if (this.#drop(id) !== undefined) changed = true
    }
    if (changed) this.#watchThem()
  }

  #drop(id: string): Port | undefined {
    const port = this.#ports.get(id)
    this.#backends -= port?.keys.size ?? 0
    this.#ports.delete(id)
    return port
  }

  /** For people; undefined: nothing is counted. */
  status(): string | undefined {
    return this.#watch && `Least connections: for ${this.#ports.size} service ports`
  }

  close(): void {
    this.#isClosed = true
    this.#again.close()
    this.#ports.clear()
    this.#end()
  }

  #watchThem(): void {
    if (this.#ports.size === 0) return this.#end()
    if (this.#again.isWaiting) return
    try {
      this.#watch ??= this.#open()
    } catch (error) {
      this.#again.failed(error)
      return
    }
    this.#again.succeeded()
    const { counts } = this.#watch
    counts.watch(new Set([...this.#ports.values()].flatMap(({ keys }) => [...keys.values()])))
    this.#readMissing(counts)
    this.#timer ??= this.#wait()
  }

  #readMissing(counts: OpenConnections): void {
    const nowMs = this.#options.clock.monotonicNow()
    if (!this.#isMissing || nowMs < this.#readAgainMs) return
    this.#isMissing = false
    this.#readAgainMs = Infinity
    counts
      .addOpen(this.#kernel.readOpen)
      .catch((error: unknown) => {
        this.#isMissing = true
        this.#options.log.error(error, 'Cannot count connections')
      })
      .finally(() => {
        this.#readAgainMs = this.#options.clock.monotonicNow() + READ_EVERY_MS
      })
  }

  #open(): { readonly counts: OpenConnections; close(): void } {
    const { clock } = this.#options
    const counts = new OpenConnections(() => clock.monotonicNow())
    const watch = this.#kernel.watchEnds({
      onEvent: (event) => counts.add(event),
      onLost: () => {
        counts.forget()
        this.#isMissing = true
      },
      // What a process chose at connect() is not translated, and counts.
      translatedOnly: false,
    })
    return { counts, close: () => watch.close() }
  }

  get #kernel() {
    return this.#options.kernel ?? { watchEnds, readOpen }
  }

  #wait(): Timer {
    return this.#options.clock.setTimeout(() => this.#tick(), TICK_MS)
  }

  #tick(): void {
    if (this.#isClosed || this.#watch === undefined) return
    const { counts } = this.#watch
    this.#readMissing(counts)
    const seen = counts.look()
    for (const port of this.#ports.values()) {
      const loads = new Map<string, { open: number; begun: number }>()
      for (const [backend, key] of port.keys) {
        const now = seen.get(key)
        const before = port.loads.get(backend) ?? now
        if (now !== undefined && before !== undefined)
          loads.set(backend, { open: (before.open + now.open) / 2, begun: (before.begun + now.begun) / 2 })
      }
      port.loads = loads
      const isQuiet = isIdle(loads)
      if (isQuiet && port.isAtRest) continue
      const moved = this.#options.onLoads(port.family, port.name, loads)
      port.isAtRest = isQuiet && !moved
    }
    this.#timer = this.#wait()
  }

  #end(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#watch?.close()
    this.#watch = undefined
    this.#isMissing = true
  }
}

function keysOf({ backends, protocol }: ServicePortView): ReadonlyMap<string, BackendKey> {
  return new Map(
    backends.map(({ ip, port }) => [joinHostPort(ip, port), backendKey(PROTOCOLS[protocol], ip, port)] as const),
  )
}
