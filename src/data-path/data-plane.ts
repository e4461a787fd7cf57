// The control side of the data path: pools and their listeners are opened, changed and shut here, and carried by all threads.

import { mustCall, tryCall } from '../system/libc.ts'
import type { PortRange } from './port-range.ts'
import { type NewPool, Pool } from './control-pool.ts'
import type { AffinityEntry } from './pool.ts'
import { SourcePorts } from './source-ports.ts'
import { createBackendCounters, readBackendTotals, type BackendTotals } from './backend-counters.ts'
import { bulkStreams, Workers, type WorkersMemory } from './workers.ts'
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
const MOST_COUNTED = 8192

/** By serial number, what went to each backend since it was opened. */
export interface BackendCount {
  read(): ReadonlyMap<number, BackendTotals>
  close(): void
}

/** So many closed pools are kept without looking whether they have connections. */
const FEW_CLOSED = 64

interface RunningWorkers {
  readonly links: readonly WorkerLink[]
  readonly workers: WorkersMemory
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
  #running: RunningWorkers | undefined
  #backendCounters: { readonly memory: SharedArrayBuffer; users: number } | undefined
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
    return this.active === 0 && (this.#running === undefined || bulkStreams(this.#running.workers) === 0)
  }

  /** Counts what goes to each backend until it is closed. */
  countBackends(): BackendCount {
    if (this.#backendCounters === undefined) {
      this.#backendCounters = { memory: createBackendCounters(this.threads, MOST_COUNTED), users: 0 }
      this.#postCounters(this.#backendCounters.memory)
    }
    const backendCounters = this.#backendCounters
    backendCounters.users++
    let isOpen = true
    return {
      read: () => readBackendTotals(backendCounters.memory, this.threads),
      close: () => {
        if (isOpen) backendCounters.users--
        isOpen = false
        if (backendCounters.users > 0 || this.#backendCounters !== backendCounters) return
        this.#backendCounters = undefined
        this.#postCounters(undefined)
      },
    }
  }

  /** Which backends affinity has for a client, an address: one thread knows, or with several listeners of UDP one for each. */
  async findAffinity(pool: Pool, client: string): Promise<readonly AffinityEntry[]> {
    const entries = await Promise.all(this.#running?.links.map((link) => link.findAffinity(pool.id, client)) ?? [])
    return entries.filter((each) => each !== undefined)
  }

  #postCounters(memory: SharedArrayBuffer | undefined): void {
    for (const link of this.#running?.links ?? []) link.post({ kind: 'count backends', memory })
  }

  /** Resolves when all that was opened, changed and shut is so, and clients that came before are counted. */
  async settle(): Promise<void> {
    // First all clients are let in and perhaps handed over, then taken.
    for (let round = 0; round < 2; round++) await Promise.all(this.#running?.links.map((link) => link.done()) ?? [])
  }

  /** Ends all connections. */
  async stop(): Promise<void> {
    if (this.#running === undefined) return
    const { links, workers, onExit } = this.#running
    this.#running = undefined
    this.#pools.clear()
    this.#closed.clear()
    this.#isSweeping = false
    await Promise.all(links.map((link) => link.stop()))
    process.off('exit', onExit)
    for (const fd of workers.wakeFds) tryCall('close', fd)
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
  #start(): RunningWorkers {
    if (this.#running !== undefined) return this.#running
    const { udpIdleMs, ephemeral, reserved, onWarning, onFailed } = this.#options
    const workers = Workers.createMemory(Array.from({ length: this.threads }, openEventfd))
    const settings = { udpIdleMs, ephemeral, sourcePorts: SourcePorts.createMemory(reserved), workers }
    const create = (_: unknown, index: number) => new WorkerLink({ index, settings, onWarning, onFailed })
    const links = Array.from({ length: this.threads }, create)
    const onExit = () => {
      for (const link of links) link.askToStop()
    }
    process.on('exit', onExit)
    this.#running = { links, workers, onExit }
    if (this.#backendCounters !== undefined) this.#postCounters(this.#backendCounters.memory)
    return this.#running
  }
}

const EFD_CLOEXEC = 0o2000000
const EFD_NONBLOCK = 0o4000

/** Through which a thread is woken. */
function openEventfd(): number {
  return mustCall('create an eventfd', 'eventfd', 0, EFD_CLOEXEC | EFD_NONBLOCK)
}
