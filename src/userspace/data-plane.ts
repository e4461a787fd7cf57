// The control side of the data path: pools and their doors are opened, changed and shut here, and carried by all threads.

import { mustCall } from '../kernel/libc.ts'
import type { PortRange } from '../lib/port-range.ts'
import { type NewPool, Pool } from './control-pool.ts'
import type { Report } from './pool.ts'
import { SourcePorts } from './source-ports.ts'
import { Team } from './team.ts'
import { WorkerLink } from './worker-link.ts'

export interface DataPlaneOptions {
  readonly threads: number
  /** How long a UDP client is remembered that is silent. */
  readonly udpIdleMs: number
  /** The ports at which connections begin. */
  readonly ephemeral: PortRange
  readonly onReport: (report: Report) => void
  readonly onFailed: (error: Error) => void
}

export class DataPlane {
  readonly threads: number
  readonly #options: DataPlaneOptions
  readonly #pools = new Set<Pool>()
  #links: readonly WorkerLink[] | undefined
  #lastId = 0

  constructor(options: DataPlaneOptions) {
    this.threads = options.threads
    this.#options = options
  }

  open(pool: NewPool): Pool {
    const opened = new Pool(pool, {
      threads: this.threads,
      nextId: () => ++this.#lastId,
      post: (thread, command) => this.#start()[thread]!.post(command),
    })
    this.#pools.add(opened)
    return opened
  }

  /** Open connections and UDP clients, those of closed pools too. */
  get active(): number {
    let active = 0
    for (const pool of this.#pools) {
      const { active: ofPool } = pool.totals()
      if (pool.isClosed && ofPool === 0) this.#pools.delete(pool)
      active += ofPool
    }
    return active
  }

  /** Ends all connections. */
  async stop(): Promise<void> {
    const links = this.#links ?? []
    this.#links = undefined
    this.#pools.clear()
    await Promise.all(links.map((link) => link.stop()))
  }

  /** Threads cost memory, so they begin when there is something to carry. */
  #start(): readonly WorkerLink[] {
    const { udpIdleMs, ephemeral, onReport, onFailed } = this.#options
    if (this.#links === undefined) {
      const wakeFds = Array.from({ length: this.threads }, openEventfd)
      const team = Team.createMemory(wakeFds)
      const settings = { udpIdleMs, ephemeral, sourcePorts: SourcePorts.createMemory(), team }
      const create = (_: unknown, index: number) => new WorkerLink({ index, settings, onReport, onFailed })
      this.#links = Array.from({ length: this.threads }, create)
    }
    return this.#links
  }
}

const EFD_CLOEXEC = 0o2000000
const EFD_NONBLOCK = 0o4000

/** Through which a thread is woken. It closes it in the end. */
function openEventfd(): number {
  return mustCall('create an eventfd', 'eventfd', 0, EFD_CLOEXEC | EFD_NONBLOCK)
}
