// A pool as the control side sees it: backends, their health, and the doors that lead to them.

import { attachPortChoice, type BpfInstruction, tryCall } from '../kernel/libc.ts'
import type { Family } from '../lib/ip.ts'
import { monotonicMs } from './monotonic.ts'
import type { SeenAs } from '../modes/userspace/entrance.ts'
import type { Command, PoolState } from './pool.ts'
import { type BackendHealth, createCounters, HealthBoard, type PoolTotals, totalsOf } from './pool-board.ts'
import type { PoolProtocol } from './sockets.ts'

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
}

export interface BackendStatus extends Backend, BackendHealth {}

export interface NewDoor {
  /** A listening socket for each thread. They belong to the pool from now on. */
  readonly fds: readonly number[]
  readonly seenAs: SeenAs
  /** An address of this node, at which connections to backends may begin. */
  readonly address: string
}

/** How the threads are told. */
export interface Threads {
  readonly threads: number
  readonly nextId: () => number
  readonly post: (thread: number, command: Command) => void
}

export class Pool {
  readonly #id: number
  readonly #threads: Threads
  readonly #family: Family
  readonly #counters: SharedArrayBuffer
  /** By their ids. */
  readonly #doors = new Map<number, NewDoor>()
  #health = HealthBoard.create(4)
  /** Which backend has which slot. */
  #slots = new Map<string, number>()
  #contents: PoolContents
  #isClosed = false

  constructor({ family, protocol, ...contents }: NewPool, threads: Threads) {
    this.#id = threads.nextId()
    this.#threads = threads
    this.#family = family
    this.#counters = createCounters(threads.threads)
    this.#contents = contentsOf(contents)
    const pool = { id: this.#id, family, protocol, counters: this.#counters, ...this.#state() }
    this.#tellAll(() => ({ kind: 'open', pool }))
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
    if ((before.affinitySeconds === undefined) !== (contents.affinitySeconds === undefined)) {
      for (const door of this.#doors.values()) this.#steer(door)
    }
    const state = this.#state()
    this.#tellAll(() => ({ kind: 'update', id: this.#id, state }))
  }

  /** Lets clients in; returns the number by which the door is shut. */
  listen(door: NewDoor): number {
    const id = this.#threads.nextId()
    const { seenAs, address } = door
    this.#doors.set(id, door)
    this.#steer(door)
    this.#tellAll((thread) => {
      return { kind: 'listen', door: { id, pool: this.#id, fd: door.fds[thread]!, seenAs, address } }
    })
    return id
  }

  /** Who has already come is served; open connections go on. */
  shut(id: number): void {
    if (this.#doors.delete(id)) this.#tellAll(() => ({ kind: 'shut', door: id }))
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    for (const id of this.#doors.keys()) this.shut(id)
    this.#tellAll(() => ({ kind: 'close', id: this.#id }))
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

  #tellAll(command: (thread: number) => Command): void {
    for (let thread = 0; thread < this.#threads.threads; thread++) this.#threads.post(thread, command(thread))
  }

  #state(): PoolState {
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
  #steer({ fds }: NewDoor): void {
    const [fd] = fds
    if (fd === undefined || fds.length === 1) return
    if (this.#contents.affinitySeconds === undefined) detachPortChoice(fd)
    else attachPortChoice(fd, bySource(this.#family, fds.length))
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
