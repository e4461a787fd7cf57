// One thread of the data path: it carries out commands and serves its listeners.

import { Balancer } from './balancer.ts'
import { contentOf } from './pool-content.ts'
import { ClientSources } from './client-sources.ts'
import type { Command, ListenerSpec, PoolSpec, PoolState, AffinityEntry } from './pool.ts'
import { COUNTERS, countersOf } from './pool-board.ts'
import { EventLoop, type Resumable } from './event-loop.ts'
import { Relays } from './relay.ts'
import { encodeAddress, hostKey } from '../system/socket-address.ts'
import type { SourcePorts } from './source-ports.ts'
import { SpareSockets } from './spare-sockets.ts'
import { CLIENT_MESSAGE, TcpListener, TcpShared } from './tcp-listener.ts'
import type { Workers } from './workers.ts'
import { BackendCounters } from './backend-counters.ts'
import type { ThreadContext } from './thread-context.ts'
import type { TimerQueue } from './timer-queue.ts'
import { UdpListener, type UdpLimits, udpLimits, UdpShared } from './udp-listener.ts'

export interface ThreadOptions {
  readonly udpIdleMs: number
  readonly sourcePorts: SourcePorts
  readonly workers: Workers
  /** Connections take only file descriptors below this one. */
  readonly endFd: number
  readonly warn: (message: string) => void
  /** By default as many as file descriptors allow. */
  readonly udpLimits?: UdpLimits | undefined
}

interface OpenPool {
  readonly spec: PoolSpec
  readonly balancer: Balancer
  readonly counters: Float64Array
  readonly udpListeners: Set<UdpListener>
}

/** The thread that accepts TCP clients. */
const KEEPER = 0
const FORGET_AFTER_MS = 1000
/** How long a listener pauses that lacks memory or file descriptors. */
const PAUSE_MS = 100

export class DataPathThread {
  readonly loop: EventLoop = new EventLoop()
  readonly #context: ThreadContext
  readonly #relays: Relays
  readonly #tcp: TcpShared
  readonly #udp: UdpShared
  readonly #pools = new Map<number, OpenPool>()
  readonly #listeners = new Map<number, TcpListener | UdpListener>()
  /** Clients of these may still be on their way from another thread. */
  readonly #closingListeners: TimerQueue<number>

  constructor({ udpIdleMs, sourcePorts, workers, endFd, warn, ...options }: ThreadOptions) {
    const { loop } = this
    const context = (this.#context = {
      loop,
      workers,
      sources: new ClientSources(sourcePorts, warn),
      spares: new SpareSockets(endFd),
      backendCounters: new BackendCounters(workers.index, workers.size),
      paused: loop.timers(PAUSE_MS, (listener: Resumable) => listener.resume()),
      endFd,
      warn,
    })
    this.#relays = new Relays(context)
    this.#tcp = new TcpShared(context, this.#relays)
    this.#udp = new UdpShared(context, {
      idleMs: udpIdleMs,
      limits: options.udpLimits ?? udpLimits(endFd, workers.size),
    })
    this.#closingListeners = loop.timers(FORGET_AFTER_MS, (listener) => this.#listeners.delete(listener))
    if (workers.size > 1) loop.onTurn = (nowMs) => workers.updateLoad(nowMs)
  }

  carryOut(command: Command): void {
    switch (command.kind) {
      case 'open':
        this.#open(command.pool)
        break
      case 'update':
        this.#update(command.id, command.state)
        break
      case 'listen':
        this.#listen(command.listener)
        break
      case 'close listener':
        this.#closeListener(command.listener)
        break
      case 'close pool':
        this.#pools.delete(command.id)
        break
      case 'count backends':
        this.#context.backendCounters.use(command.memory)
        break
      case 'find affinity':
      case 'report when done':
        // Answered by worker.ts.
        break
    }
  }

  /** The affinity entry of a client. One thread has it, the keeper of the listener. */
  findAffinity(pool: number, client: string): AffinityEntry | undefined {
    return this.#pools.get(pool)?.balancer.findAffinity(hostKey(encodeAddress(client, 0)), this.loop.nowMs)
  }

  /** Ends all connections and closes all that it opened. */
  dispose(): void {
    this.receiveMessages()
    this.loop.dispose()
    this.#relays.pipes.dispose()
    this.#context.spares.dispose()
    this.#context.sources.dispose()
  }

  /** Takes what other threads handed over. All earlier commands must have been carried out. */
  receiveMessages(): void {
    for (let record; (record = this.#context.workers.receive()) !== undefined;) this.#take(record)
  }

  #take([kind, ...words]: Int32Array): void {
    if (kind === CLIENT_MESSAGE) {
      const [clientFd = -1, id = -1] = words
      const listener = this.#listeners.get(id)
      if (listener instanceof TcpListener) listener.serveAccepted(clientFd)
      else this.loop.close(clientFd)
      return
    }
    const [clientFd = -1, backendFd = -1, pool = -1, sourcePort = 0, state = 0, serial = 0] = words
    const counters = this.#pools.get(pool)?.counters ?? UNREAD_COUNTERS
    const shown = this.#context.sources.shownBy(backendFd, sourcePort)
    this.#relays.takeOver({ clientFd, backendFd, pool, serial, shown, counters }, state)
  }

  #open(spec: PoolSpec): void {
    const balancer = new Balancer(contentOf(spec))
    this.#pools.set(spec.id, {
      spec,
      balancer,
      counters: countersOf(spec.counters, this.#context.workers.index),
      udpListeners: new Set(),
    })
  }

  #update(id: number, state: PoolState): void {
    const pool = this.#pools.get(id)
    if (pool === undefined) return
    pool.balancer.update(contentOf(state))
    for (const listener of pool.udpListeners) listener.leaveRemoved()
  }

  #closeListener(id: number): void {
    const listener = this.#listeners.get(id)
    if (listener === undefined) return
    listener.close()
    if (listener instanceof UdpListener) this.#pools.get(listener.options.pool)?.udpListeners.delete(listener)
    this.#closingListeners.start(id, this.loop.nowMs)
  }

  #listen({ id, pool, fd, seenAs, address }: ListenerSpec): void {
    const { spec, balancer, counters, udpListeners } = this.#pools.get(pool)!
    const node = encodeAddress(address, 0)
    const { index, size } = this.#context.workers
    // The clients of a UDP listener are known to one thread only, so listeners are spread and not clients.
    const isKeeper = index === (spec.protocol === 'TCP' ? KEEPER : id % size)
    const options = { id, pool, fd, isKeeper, family: spec.family, balancer, counters, seenAs, node }
    const listener =
      spec.protocol === 'TCP'
        ? new TcpListener(this.#context, options, this.#tcp)
        : new UdpListener(this.#context, options, this.#udp)
    if (listener instanceof UdpListener) udpListeners.add(listener)
    this.#listeners.set(id, listener)
  }
}

/** For a connection whose pool was closed while it was on its way from thread to thread. */
const UNREAD_COUNTERS = new Float64Array(COUNTERS.length)
