// Joins a client's connection and a backend's: what comes in at one end goes out at the other, until both directions end.
//
// The end of one direction (FIN) is passed on, and the other goes on. A reset at one end resets the other, after that one has
// received what was sent to it.

import { boundCall } from '../system/libc.ts'
import type { ShownClient } from './client-sources.ts'
import { FLUSH_CHECK_MS, Flushing } from './flushing.ts'
import { PipePool } from './pipe-pool.ts'
import { ACTIVE, TO_BACKENDS, TO_CLIENTS } from './pool-board.ts'
import { STREAM_EVENTS } from './event-loop.ts'
import { BUFFER_SIZE, RelayEnd } from './relay-end.ts'
import { keepAlive, resetOnClose } from './sockets.ts'
import { RECEIVED_BYTES, SENT_BYTES } from './backend-counters.ts'
import { type ThreadContext, watchOrWarn } from './thread-context.ts'
import type { TimerQueue } from './timer-queue.ts'

/** A message with a relay for another thread: both sockets, pool, source port, state and backend. */
export const RELAY_MESSAGE = 2
const STATE_BITS = 8
/** Shorter connections do without keep-alive probes. */
const YOUNG_MS = 10_000

/** What all relays of a thread use together. */
export class Relays {
  readonly context: ThreadContext
  readonly pipes: PipePool
  readonly buffer: Uint8Array = new Uint8Array(BUFFER_SIZE)
  readonly recv: ReturnType<typeof boundCall<'recv'>> = boundCall('recv')
  readonly send: ReturnType<typeof boundCall<'send'>> = boundCall('send')
  readonly splice: ReturnType<typeof boundCall<'splice'>> = boundCall('splice')
  readonly shutdown: ReturnType<typeof boundCall<'shutdown'>> = boundCall('shutdown')
  readonly ioctl: ReturnType<typeof boundCall<'ioctl'>> = boundCall('ioctl')
  readonly flushing: TimerQueue<Flushing>
  readonly young: TimerQueue<Relay>

  constructor(context: ThreadContext) {
    this.context = context
    this.pipes = new PipePool(context.endFd)
    this.flushing = context.loop.timers(FLUSH_CHECK_MS, (flushing) => flushing.check())
    this.young = context.loop.timers(YOUNG_MS, (relay) => keepAlive(relay.backend.fd))
  }

  /**
   * Joins two connections, of which that of the backend is watched already, and the client is counted as active. Where the
   * client's cannot be watched, both are reset.
   */
  join(sockets: RelaySockets): Relay {
    const relay = new Relay(this, sockets)
    this.context.loop.setHandler(sockets.backendFd, relay.backend)
    if (!watchOrWarn(this.context, sockets.clientFd, STREAM_EVENTS, relay.client)) relay.abandon()
    return relay
  }

  /** Continues a relay of another thread. */
  takeOver(sockets: RelaySockets, state: number): void {
    const relay = new Relay(this, sockets)
    sockets.counters[ACTIVE]!++
    relay.restore(state)
    relay.watch()
  }
}

export interface RelaySockets {
  readonly clientFd: number
  readonly backendFd: number
  /** All threads know the pool by this number. */
  readonly pool: number
  /** Of the backend. */
  readonly serial: number
  readonly counters: Float64Array
  readonly shown: ShownClient | undefined
}

export class Relay {
  readonly relays: Relays
  readonly client: RelayEnd
  readonly backend: RelayEnd
  readonly counters: Float64Array
  readonly #sockets: RelaySockets
  isOver = false
  /** Bulk streams are spread over the threads, once each. */
  #threadIsDecided = false

  constructor(relays: Relays, sockets: RelaySockets) {
    const { clientFd, backendFd, counters } = sockets
    this.relays = relays
    this.#sockets = sockets
    this.counters = counters
    this.client = new RelayEnd(this, clientFd, TO_BACKENDS)
    this.backend = new RelayEnd(this, backendFd, TO_CLIENTS)
    this.client.peer = this.backend
    this.backend.peer = this.client
    relays.young.start(this, relays.context.loop.nowMs)
  }

  count(counter: typeof TO_BACKENDS | typeof TO_CLIENTS, bytes: number): void {
    this.counters[counter]! += bytes
    this.relays.context.backendCounters.add(
      this.#sockets.serial,
      counter === TO_BACKENDS ? SENT_BYTES : RECEIVED_BYTES,
      bytes,
    )
  }

  /** Gives a bulk stream to the thread with the fewest of them; true when that is another one. */
  moveIfBetter(): boolean {
    if (this.#threadIsDecided) return false
    this.#threadIsDecided = true
    const { workers, loop } = this.relays.context
    workers.countBulk(workers.index, 1)
    const thread = workers.threadForBulk()
    if (thread === undefined) return false
    const { clientFd, backendFd, pool, serial, shown } = this.#sockets
    const state = this.client.state() | (this.backend.state() << STATE_BITS)
    loop.unwatch(clientFd)
    loop.unwatch(backendFd)
    if (!workers.send(thread, [RELAY_MESSAGE, clientFd, backendFd, pool, shown?.port ?? 0, state, serial])) {
      return !this.watch()
    }
    // In this order: DataPlane.isIdle looks at the active ones first.
    workers.countBulk(workers.index, -1)
    workers.countBulk(thread, 1)
    this.isOver = true
    this.relays.young.stop(this)
    this.counters[ACTIVE]!--
    return true
  }

  /** The other thread has already counted the stream for this one. */
  restore(state: number): void {
    this.#threadIsDecided = true
    this.client.restore(state)
    this.backend.restore(state >> STATE_BITS)
  }

  /** Watches both ends; false when that is not possible, and then they are reset. */
  watch(): boolean {
    const { context } = this.relays
    const isWatched = [this.backend, this.client].every((end) => watchOrWarn(context, end.fd, STREAM_EVENTS, end))
    if (!isWatched) this.abandon()
    return isWatched
  }

  /** Both directions have ended. The kernel delivers what it still has. */
  finish(): void {
    if (this.isOver) return
    this.#end()
    const { loop, sources } = this.relays.context
    loop.close(this.client.fd)
    const { shown } = this.#sockets
    loop.close(this.backend.fd, shown && (() => sources.lingers(shown)))
  }

  /** Resets both ends, because the kernel cannot watch them. */
  abandon(): void {
    if (this.isOver) return
    this.#end()
    for (const end of [this.client, this.backend]) {
      resetOnClose(end.fd)
      this.relays.context.loop.close(end.fd, this.#afterReset(end))
    }
  }

  /** Resets the other end after it has received what was sent to it. */
  break(broken: RelayEnd): void {
    if (this.isOver) return
    this.#end()
    resetOnClose(broken.fd)
    this.relays.context.loop.close(broken.fd, this.#afterReset(broken))
    new Flushing(this.relays, broken.peer.fd, this.#afterReset(broken.peer)).check()
  }

  #afterReset(end: RelayEnd): (() => void) | undefined {
    const { shown } = this.#sockets
    return end === this.backend && shown !== undefined ? () => this.relays.context.sources.over(shown) : undefined
  }

  #end(): void {
    this.isOver = true
    this.relays.young.stop(this)
    this.counters[ACTIVE]!--
    const { workers } = this.relays.context
    if (this.#threadIsDecided) workers.countBulk(workers.index, -1)
    this.client.release()
    this.backend.release()
  }
}
