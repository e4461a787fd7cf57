// The control side of the data path: pools and their doors are opened, changed and shut here, and carried by all threads.

import { mustCall, tryCall } from '../system/libc.ts'
import type { PortRange } from '../lib/port-range.ts'
import { type NewPool, Pool } from './control-pool.ts'
import type { Recalled } from './pool.ts'
import { SourcePorts } from './source-ports.ts'
import { createTally, readTally, type Tallied } from './tally.ts'
import { bulkStreams, Team, type TeamMemory } from './team.ts'
import { WorkerLink } from './worker-link.ts'

export interface DataPlaneOptions {
  readonly threads: number
  /** How long a UDP client is remembered that is silent. */
  readonly udpIdleMs: number
  /** The ports at which connections begin. */
  readonly ephemeral: PortRange
  /** Among these, ports that are kept for others. */
  readonly reserved: ReadonlySet<number>
  readonly onWarning: (message: string) => void
  /** A thread died, and its connections with it. */
  readonly onFailed: (error: Error) => void
}

/** Backends that are counted for, in each thread: as many pairs as the kernel counts. */
const MOST_TALLIED = 8192

/** By serial number, what went to each backend since it was opened. */
export interface Tally {
  read(): ReadonlyMap<number, Tallied>
  close(): void
}

/** So many closed pools are kept without looking whether they have connections. */
const FEW_CLOSED = 64

interface Crew {
  readonly links: readonly WorkerLink[]
  readonly team: TeamMemory
  /** A process ends only when its threads have, and these may wait for a long time. */
  readonly onExit: () => void
}

export class DataPlane {
  readonly threads: number
  readonly #options: DataPlaneOptions
  readonly #pools = new Set<Pool>()
  /** Those of them that are closed. They are kept only for the sake of connections that are still open. */
  readonly #closed = new Set<Pool>()
  #sweepFrom = FEW_CLOSED
  #isSweeping = false
  #crew: Crew | undefined
  #tally: { readonly memory: SharedArrayBuffer; users: number } | undefined
  #lastId = 0

  constructor(options: DataPlaneOptions) {
    this.threads = options.threads
    this.#options = options
  }

  open(pool: NewPool): Pool {
    const opened = new Pool(pool, {
      threads: this.threads,
      nextId: () => ++this.#lastId,
      post: (thread, command) => this.#start().links[thread]!.post(command),
      onClosed: () => this.#noteClosed(opened),
    })
    this.#pools.add(opened)
    return opened
  }

  /** How many pools are kept in memory, with those that are closed and may have open connections. */
  get pools(): number {
    return this.#pools.size
  }

  /** Open connections and UDP clients, those of closed pools too. Clients on their way from thread to thread are missing. */
  get active(): number {
    let active = 0
    for (const pool of this.#pools) active += pool.totals().active
    return active
  }

  /** Whether no client is served. */
  get isIdle(): boolean {
    // In this order: a stream that changes threads is always one of these.
    return this.active === 0 && (this.#crew === undefined || bulkStreams(this.#crew.team) === 0)
  }

  /** Counts what goes to each backend until it is closed. */
  openTally(): Tally {
    if (this.#tally === undefined) {
      this.#tally = { memory: createTally(this.threads, MOST_TALLIED), users: 0 }
      this.#tellTally(this.#tally.memory)
    }
    const tally = this.#tally
    tally.users++
    let isOpen = true
    return {
      read: () => readTally(tally.memory, this.threads),
      close: () => {
        if (isOpen) tally.users--
        isOpen = false
        if (tally.users > 0 || this.#tally !== tally) return
        this.#tally = undefined
        this.#tellTally(undefined)
      },
    }
  }

  /** Which backends affinity has for a client, an address: one thread knows, or with several doors of UDP one for each. */
  async recall(pool: Pool, client: string): Promise<readonly Recalled[]> {
    const recalled = await Promise.all(this.#crew?.links.map((link) => link.recall(pool.id, client)) ?? [])
    return recalled.filter((each) => each !== undefined)
  }

  #tellTally(memory: SharedArrayBuffer | undefined): void {
    for (const link of this.#crew?.links ?? []) link.post({ kind: 'tally', memory })
  }

  /** Resolves when all that was opened, changed and shut is so, and clients that came before are counted. */
  async settle(): Promise<void> {
    // First all clients are let in and perhaps handed over, then taken.
    for (let round = 0; round < 2; round++) await Promise.all(this.#crew?.links.map((link) => link.done()) ?? [])
  }

  /** Ends all connections. */
  async stop(): Promise<void> {
    if (this.#crew === undefined) return
    const { links, team, onExit } = this.#crew
    this.#crew = undefined
    this.#pools.clear()
    this.#closed.clear()
    this.#isSweeping = false
    await Promise.all(links.map((link) => link.stop()))
    process.off('exit', onExit)
    for (const fd of team.wakeFds) tryCall('close', fd)
  }

  #noteClosed(pool: Pool): void {
    this.#closed.add(pool)
    if (this.#closed.size >= this.#sweepFrom && !this.#isSweeping) void this.#forgetUnused()
  }

  /**
   * Forgets closed pools without connections, whenever there are twice as many as were left the last time: so that costs
   * little for each pool.
   */
  async #forgetUnused(): Promise<void> {
    this.#isSweeping = true
    const closed = [...this.#closed]
    // Until then, clients may come that were waiting in the kernel's queue when the pool was closed.
    await this.settle()
    for (const pool of closed) {
      if (pool.totals().active > 0) continue
      this.#closed.delete(pool)
      this.#pools.delete(pool)
    }
    this.#sweepFrom = Math.max(FEW_CLOSED, 2 * this.#closed.size)
    this.#isSweeping = false
  }

  /** Threads cost memory, so they begin when there is something to carry. */
  #start(): Crew {
    if (this.#crew !== undefined) return this.#crew
    const { udpIdleMs, ephemeral, reserved, onWarning, onFailed } = this.#options
    const team = Team.createMemory(Array.from({ length: this.threads }, openEventfd))
    const settings = { udpIdleMs, ephemeral, sourcePorts: SourcePorts.createMemory(reserved), team }
    const create = (_: unknown, index: number) => new WorkerLink({ index, settings, onWarning, onFailed })
    const links = Array.from({ length: this.threads }, create)
    const onExit = () => {
      for (const link of links) link.askToStop()
    }
    process.on('exit', onExit)
    this.#crew = { links, team, onExit }
    if (this.#tally !== undefined) this.#tellTally(this.#tally.memory)
    return this.#crew
  }
}

const EFD_CLOEXEC = 0o2000000
const EFD_NONBLOCK = 0o4000

/** Through which a thread is woken. */
function openEventfd(): number {
  return mustCall('create an eventfd', 'eventfd', 0, EFD_CLOEXEC | EFD_NONBLOCK)
}
