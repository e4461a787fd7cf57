// A pool as the control side sees it: backends, their health, and the listeners that lead to them.

import type { Family } from '../lib/ip.ts'
import { monotonicMs } from './monotonic.ts'
import type { SeenAs } from './seen-as.ts'
import type { Command, HashBy, PoolState } from './pool.ts'
import { type BackendHealth, createCounters, HealthBoard, type PoolTotals, totalsOf } from './pool-board.ts'
import type { PoolProtocol } from './sockets.ts'

export interface Backend {
  readonly ip: string
  readonly port: number
  /** Its share of new clients; absent: 1. */
  readonly weight?: number | undefined
}

export interface PoolContents {
  readonly backends: readonly Backend[]
  readonly affinitySeconds: number | undefined
  /** Absent: backends take turns. */
  readonly hashBy?: HashBy | undefined
}

export interface NewPool extends PoolContents {
  readonly family: Family
  readonly protocol: PoolProtocol
}

export interface BackendStatus extends Backend, BackendHealth {
  /** By which threads count for it. */
  readonly serial: number
}

export interface NewListener {
  /** A listening socket. It belongs to the pool from now on. */
  readonly fd: number
  readonly seenAs: SeenAs
  /** An address of this node, at which connections to backends may begin. */
  readonly address: string
}

/** The way to the threads. */
export interface Threads {
  readonly threads: number
  readonly nextId: () => number
  readonly post: (thread: number, command: Command) => void
  /** The pool accepts no more clients. */
  readonly onClosed?: () => void
}

export class Pool {
  readonly protocol: PoolProtocol
  readonly #id: number
  readonly #threads: Threads
  readonly #counters: SharedArrayBuffer
  readonly #listeners = new Set<number>()
  #health = HealthBoard.create(4)
  /** Which backend has which slot. */
  #slots = new Map<string, number>()
  #serials = new Map<string, number>()
  #contents: PoolContents
  #isClosed = false

  constructor({ family, protocol, ...contents }: NewPool, threads: Threads) {
    this.protocol = protocol
    this.#id = threads.nextId()
    this.#threads = threads
    this.#counters = createCounters(threads.threads)
    this.#contents = contentsOf(contents)
    const pool = { id: this.#id, family, protocol, counters: this.#counters, ...this.#state() }
    this.#postAll({ kind: 'open', pool })
  }

  /** Threads know the pool by this number. */
  get id(): number {
    return this.#id
  }

  /** New connections go to these backends from now on. */
  update(given: PoolContents): void {
    const contents = contentsOf(given)
    if (JSON.stringify(contents) === JSON.stringify(this.#contents)) return
    this.#contents = contents
    const state = this.#state()
    this.#postAll({ kind: 'update', id: this.#id, state })
  }

  /** Accepts clients on a socket. Returns the number of the listener. */
  listen(listener: NewListener): number {
    const id = this.#threads.nextId()
    this.#listeners.add(id)
    this.#postAll({ kind: 'listen', listener: { id, pool: this.#id, ...listener } })
    return id
  }

  /** Clients that have already come are served; open connections go on. */
  shut(id: number): void {
    if (this.#listeners.delete(id)) this.#postAll({ kind: 'close listener', listener: id })
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    for (const id of this.#listeners) this.shut(id)
    this.#postAll({ kind: 'close pool', id: this.#id })
    this.#threads.onClosed?.()
  }

  totals(): PoolTotals {
    return totalsOf(this.#counters)
  }

  backends(): readonly BackendStatus[] {
    const nowMs = monotonicMs()
    return this.#contents.backends.map((backend) => ({
      ...backend,
      ...this.#health.health(this.#slots.get(idOf(backend))!, nowMs),
      serial: this.#serials.get(idOf(backend))!,
    }))
  }

  /** The thread that accepts clients comes last: when it hands some over, the others know their listener. */
  #postAll(command: Command): void {
    for (let thread = this.#threads.threads - 1; thread >= 0; thread--) this.#threads.post(thread, command)
  }

  #state(): PoolState {
    this.#assignSlots()
    const { backends, affinitySeconds, hashBy } = this.#contents
    return {
      backends: backends.map(({ ip, port, weight }) => {
        const id = idOf({ ip, port })
        return { ip, port, weight, slot: this.#slots.get(id)!, serial: this.#serials.get(id)! }
      }),
      health: this.#health.memory,
      affinitySeconds,
      hashBy,
    }
  }

  /** Backends keep their slots; new ones get those that are free, with a clean slate. */
  #assignSlots(): void {
    const { backends } = this.#contents
    if (backends.length > this.#health.slots) this.#health = this.#health.grownTo(backends.length * 2)
    const ids = backends.map(idOf)
    const slots = new Map(ids.flatMap((id) => (this.#slots.has(id) ? [[id, this.#slots.get(id)!] as const] : [])))
    const taken = new Set(slots.values())
    let free = 0
    for (const id of ids) {
      if (slots.has(id)) continue
      while (taken.has(free)) free++
      taken.add(free)
      slots.set(id, free)
      this.#health.forgive(free)
    }
    this.#slots = slots
    this.#serials = new Map(ids.map((id) => [id, this.#serials.get(id) ?? this.#threads.nextId()]))
  }
}

function contentsOf({ backends, affinitySeconds, hashBy }: PoolContents): PoolContents {
  return { backends: backends.map(({ ip, port, weight }) => ({ ip, port, weight })), affinitySeconds, hashBy }
}

function idOf({ ip, port }: Backend): string {
  return `${ip} ${port}`
}
