// The control side of the data path: opens, changes and closes pools and their listeners, which the worker threads serve.

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
  /** The session of a silent UDP client ends after this time. */
  readonly udpIdleMs: number
  /** The ports at which connections begin. */
  readonly ephemeral: PortRange
  /** Among these, ports that are kept for others. */
  readonly reserved: ReadonlySet<number>
  readonly onWarning: (message: string) => void
  /** A thread died, and its connections with it. */
  readonly onFailed: (error: Error) => void
}

/** As many backends in each thread as the kernel counts pairs. */
const MOST_COUNTED = 8192

/** The totals of each backend since this was opened, by serial number. */
export interface BackendCount {
  read(): ReadonlyMap<number, BackendTotals>
  close(): void
}

/** Closed pools are not checked for connections before there are so many. */
const FEW_CLOSED = 64

interface RunningWorkers {
  readonly links: readonly WorkerLink[]
  readonly workers: WorkersMemory
  /** Stops the threads: the process ends only after them, and they may wait for long. */
  readonly onExit: () => void
}

export class DataPlane {
  readonly threads: number
  readonly #options: DataPlaneOptions
  readonly #pools = new Set<Pool>()
  /** Closed pools, kept while they may have open connections. */
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
      onClosed: () => this.#onPoolClosed(opened),
    })
    this.#pools.add(opened)
    return opened
  }

  /** Including closed ones that may have open connections. */
  get pools(): number {
    return this.#pools.size
  }

  /** Open connections and UDP clients, also of closed pools, but without those on their way from thread to thread. */
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

  /** The affinity entries of a client address. One thread has it, or with several UDP listeners one thread for each. */
  async findAffinity(pool: Pool, client: string): Promise<readonly AffinityEntry[]> {
    const entries = await Promise.all(this.#running?.links.map((link) => link.findAffinity(pool.id, client)) ?? [])
    return entries.filter((each) => each !== undefined)
  }

  #postCounters(memory: SharedArrayBuffer | undefined): void {
    for (const link of this.#running?.links ?? []) link.post({ kind: 'count backends', memory })
  }

  /** Resolves when the threads have done all that they were asked to, and have counted the clients that came before. */
  async settle(): Promise<void> {
    // Round 1 accepts clients or hands them over; round 2 takes what was handed over.
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

  #onPoolClosed(pool: Pool): void {
    this.#closed.add(pool)
    if (this.#closed.size >= this.#sweepFrom && !this.#isSweeping) void this.#dropUnused()
  }

  /**
   * Drops closed pools without connections, whenever there are twice as many as were left the last time, so that the cost for
   * each pool is small.
   */
  async #dropUnused(): Promise<void> {
    this.#isSweeping = true
    const closed = [...this.#closed]
    // Clients may still come that waited in the kernel's queue when the pool was closed.
    await this.settle()
    for (const pool of closed) {
      if (pool.totals().active > 0) continue
      this.#closed.delete(pool)
      this.#pools.delete(pool)
    }
    this.#sweepFrom = Math.max(FEW_CLOSED, 2 * this.#closed.size)
    this.#isSweeping = false
  }

  /** Threads cost memory, so they start with the first pool. */
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

/** Wakes a thread. */
function openEventfd(): number {
  return mustCall('create an eventfd', 'eventfd', 0, EFD_CLOEXEC | EFD_NONBLOCK)
}
