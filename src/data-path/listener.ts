// What TCP and UDP listeners have in common: one thread watches the socket, and pauses while it lacks resources.

import type { Family } from '../lib/ip.ts'
import type { Balancer } from './balancer.ts'
import { type EventHandler, READABLE, type Resumable } from './event-loop.ts'
import type { SeenAs } from './seen-as.ts'
import { type ThreadContext, watchOrWarn } from './thread-context.ts'

export interface ListenerOptions {
  /** All threads know the listener and its pool by these numbers. */
  readonly id: number
  readonly pool: number
  readonly fd: number
  /** Whether this thread is the one that accepts clients. */
  readonly isKeeper: boolean
  readonly family: Family
  readonly balancer: Balancer
  readonly counters: Float64Array
  /** Whose address backends see. */
  readonly seenAs: SeenAs
  /** Connections whose source is then replaced begin at this address. */
  readonly node: Uint8Array
}

export abstract class Listener implements EventHandler, Resumable {
  readonly options: ListenerOptions
  readonly context: ThreadContext
  #isClosed = false
  #isWatched = false

  constructor(context: ThreadContext, options: ListenerOptions) {
    this.context = context
    this.options = options
    if (options.isKeeper) this.resume()
  }

  abstract onEvents(): void

  /** Clients wait in the kernel's queue while the socket is not watched. */
  resume(): void {
    if (this.#isClosed) return
    if (this.#isWatched) this.context.loop.change(this.options.fd, READABLE)
    else this.#isWatched = watchOrWarn(this.context, this.options.fd, READABLE, this)
    if (!this.#isWatched) this.context.paused.start(this, this.context.loop.nowMs)
  }

  /** Serves the clients that have already come, and closes the socket. */
  close(): void {
    this.#isClosed = true
    if (!this.options.isKeeper) return
    this.serveLast()
    this.context.loop.close(this.options.fd)
  }

  protected abstract serveLast(): void

  protected pause(): void {
    if (this.#isClosed) return
    this.context.loop.change(this.options.fd, 0)
    this.context.paused.start(this, this.context.loop.nowMs)
  }
}
