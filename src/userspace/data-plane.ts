// The control side of the data path: pools are opened, changed and closed here, and carried by all threads.

import { attachPortChoice, type BpfInstruction, tryCall } from '../kernel/libc.ts'
import type { Family } from '../lib/ip.ts'
import type { Command, Report } from './pool.ts'
import { monotonicMs } from './monotonic.ts'
import { type BackendHealth, createCounters, HealthBoard, type PoolTotals, totalsOf } from './pool-board.ts'
import type { PoolProtocol } from './sockets.ts'
import { WorkerLink } from './worker-link.ts'

export interface Backend {
  readonly ip: string
  readonly port: number
}

export interface PoolContents {
  readonly backends: readonly Backend[]
  readonly affinitySeconds: number | undefined
}

export interface NewPool extends PoolContents {
  readonly family: Family
  readonly protocol: PoolProtocol
  /** A listening socket for each thread. They belong to the pool from now on. */
  readonly fds: readonly number[]
}

export interface BackendStatus extends Backend, BackendHealth {}

export interface DataPlaneOptions {
  readonly threads: number
  readonly udpIdleMs: number
  readonly onReport: (report: Report) => void
  readonly onFailed: (error: Error) => void
}

export class DataPlane {
  readonly threads: number
  readonly #options: DataPlaneOptions
  readonly #pools = new Set<Pool>()
  #links: readonly WorkerLink[] | undefined
  #nextId = 0

  constructor(options: DataPlaneOptions) {
    this.threads = options.threads
    this.#options = options
  }

  open(pool: NewPool): Pool {
    const opened = new Pool(this.#nextId++, pool, (thread, command) => this.#start()[thread]!.post(command))
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
    this.#links ??= Array.from({ length: this.threads }, (_, index) => new WorkerLink({ ...this.#options, index }))
    return this.#links
  }
}

type Post = (thread: number, command: Command) => void

/** A listener and its backends. */
export class Pool {
  readonly #id: number
  readonly #post: Post
  readonly #fds: readonly number[]
  readonly #family: Family
  readonly #counters: SharedArrayBuffer
  #health = HealthBoard.create(4)
  /** Which backend has which slot. */
  #slots = new Map<string, number>()
  #contents: PoolContents
  #isClosed = false

  constructor(id: number, pool: NewPool, post: Post) {
    this.#id = id
    this.#post = post
    this.#fds = pool.fds
    this.#family = pool.family
    this.#counters = createCounters(pool.fds.length)
    this.#contents = contentsOf(pool)
    this.#steer()
    const { family, protocol } = pool
    const state = this.#state()
    for (const [thread, fd] of pool.fds.entries()) {
      post(thread, { kind: 'open', pool: { id, family, protocol, fd, counters: this.#counters, ...state } })
    }
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** From now on, new connections go to these. */
  update(given: PoolContents): void {
    const contents = contentsOf(given)
    const before = this.#contents
    if (JSON.stringify(contents) === JSON.stringify(before)) return
    this.#contents = contents
    if ((before.affinitySeconds === undefined) !== (contents.affinitySeconds === undefined)) this.#steer()
    const state = this.#state()
    this.#tellAll({ kind: 'update', id: this.#id, state })
  }

  /** Listens no longer; open connections go on. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#tellAll({ kind: 'close', id: this.#id })
  }

  totals(): PoolTotals {
    return totalsOf(this.#counters)
  }

  backends(): readonly BackendStatus[] {
    const nowMs = monotonicMs()
    return this.#contents.backends.map((backend) => ({
      ...backend,
      ...this.#health.health(this.#slots.get(idOf(backend))!, nowMs),
    }))
  }

  #tellAll(command: Command): void {
    for (const thread of this.#fds.keys()) this.#post(thread, command)
  }

  #state(): Extract<Command, { kind: 'update' }>['state'] {
    this.#assignSlots()
    const { backends, affinitySeconds } = this.#contents
    return {
      backends: backends.map(({ ip, port }) => ({ ip, port, slot: this.#slots.get(idOf({ ip, port }))! })),
      health: this.#health.memory,
      affinitySeconds,
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
  }

  /** With session affinity, a client's connections come to the same thread, for that knows the client. */
  #steer(): void {
    const [fd] = this.#fds
    if (fd === undefined || this.#fds.length === 1) return
    if (this.#contents.affinitySeconds === undefined) detachPortChoice(fd)
    else attachPortChoice(fd, bySource(this.#family, this.#fds.length))
  }
}

const SOL_SOCKET = 1
const SO_DETACH_REUSEPORT_BPF = 68

/** Back to the kernel's choice, by addresses and ports. Fails when there was no other. */
function detachPortChoice(fd: number): void {
  tryCall('setsockopt', fd, SOL_SOCKET, SO_DETACH_REUSEPORT_BPF, new Int32Array(1), 4)
}

/** A classic BPF program: the last four bytes of the packet's source address, modulo the number of sockets. */
function bySource(family: Family, sockets: number): BpfInstruction[] {
  const BPF_LD_W_ABS = 0x20
  const BPF_MOD_K = 0x94
  const BPF_RET_A = 0x16
  const SKF_NET_OFF = 0xfff00000
  const sourceAt = family === 4 ? 12 : 8 + 12
  return [
    { code: BPF_LD_W_ABS, jt: 0, jf: 0, k: SKF_NET_OFF + sourceAt },
    { code: BPF_MOD_K, jt: 0, jf: 0, k: sockets },
    { code: BPF_RET_A, jt: 0, jf: 0, k: 0 },
  ]
}

function contentsOf({ backends, affinitySeconds }: PoolContents): PoolContents {
  return { backends: backends.map(({ ip, port }) => ({ ip, port })), affinitySeconds }
}

function idOf({ ip, port }: Backend): string {
  return `${ip} ${port}`
}
