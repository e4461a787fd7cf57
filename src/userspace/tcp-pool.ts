// TCP: accepts, finds a backend that answers, and joins the two.

import { boundCall, lastErrno } from '../kernel/libc.ts'
import type { Family } from '../lib/ip.ts'
import type { Balancer, PoolBackend } from './balancer.ts'
import { CONNECTIONS, FAILURES, RETRIES, UNSERVED } from './pool-board.ts'
import { FAILED, READABLE, STREAM_EVENTS, type Watched, WRITABLE } from './reactor.ts'
import type { Relays } from './relay.ts'
import { ADDRESS_LENGTH, hostKey, type HostKey } from './socket-address.ts'
import { openSocket, resetOnClose, SOCK_CLOEXEC, SOCK_NONBLOCK } from './sockets.ts'
import type { TimerQueue } from './timer-queue.ts'

/** How long the first, second ... backend has to answer. There are as many tries as there are times. */
export const TRY_TIMEOUTS_MS = [250, 500, 1000, 2000] as const

/** How long nobody is accepted when this process has run out of file descriptors or memory. */
const PAUSE_MS = 100

const EXHAUSTED: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM'])

/** What all TCP pools of a thread use together. */
export class TcpShared {
  readonly relays: Relays
  readonly warn: (message: string) => void
  readonly accept: ReturnType<typeof boundCall<'accept4'>> = boundCall('accept4')
  readonly connect: ReturnType<typeof boundCall<'connect'>> = boundCall('connect')
  readonly address: Uint8Array = new Uint8Array(ADDRESS_LENGTH)
  readonly addressLength: Uint32Array = new Uint32Array(1)
  readonly tries: readonly TimerQueue<Attempt>[]
  readonly paused: TimerQueue<TcpPool>

  constructor(relays: Relays, warn: (message: string) => void) {
    const { reactor } = relays
    this.relays = relays
    this.warn = warn
    this.tries = TRY_TIMEOUTS_MS.map((ms) => reactor.timers(ms, (attempt: Attempt) => attempt.timeOut()))
    this.paused = reactor.timers(PAUSE_MS, (pool) => pool.goOn())
  }
}

export interface TcpPoolOptions {
  readonly fd: number
  readonly family: Family
  readonly balancer: Balancer
  readonly counters: Float64Array
}

export class TcpPool implements Watched {
  readonly options: TcpPoolOptions
  readonly shared: TcpShared
  #isClosed = false

  constructor(shared: TcpShared, options: TcpPoolOptions) {
    this.shared = shared
    this.options = options
    shared.relays.reactor.watch(options.fd, READABLE, this)
  }

  onEvents(): void {
    this.#acceptOne()
  }

  goOn(): void {
    if (!this.#isClosed) this.shared.relays.reactor.change(this.options.fd, READABLE)
  }

  close(): void {
    while (this.#acceptOne());
    this.#isClosed = true
    this.shared.relays.reactor.close(this.options.fd)
  }

  #acceptOne(): boolean {
    const { accept, address, addressLength } = this.shared
    const { fd, balancer } = this.options
    const wantsAddress = balancer.isSticky
    addressLength[0] = ADDRESS_LENGTH
    const clientFd = wantsAddress
      ? accept(fd, address, addressLength, SOCK_NONBLOCK | SOCK_CLOEXEC)
      : accept(fd, null, null, SOCK_NONBLOCK | SOCK_CLOEXEC)
    if (clientFd === -1) {
      const errno = lastErrno()
      if (EXHAUSTED.has(errno)) this.#pause(errno)
      return false
    }
    this.options.counters[CONNECTIONS]!++
    new Attempt(this, clientFd, wantsAddress ? hostKey(address) : 0).next()
    return true
  }

  /** Clients wait in the kernel's queue meanwhile. */
  #pause(errno: string): void {
    const { relays, paused, warn } = this.shared
    warn(`Cannot accept connections for the moment: ${errno}`)
    relays.reactor.change(this.options.fd, 0)
    paused.start(this, relays.reactor.nowMs)
  }
}

/** A client for whom a backend is being sought. */
class Attempt implements Watched {
  readonly #pool: TcpPool
  readonly #clientFd: number
  readonly #client: HostKey
  #backend: PoolBackend | undefined
  #backendFd = -1
  #tries = 0

  constructor(pool: TcpPool, clientFd: number, client: HostKey) {
    this.#pool = pool
    this.#clientFd = clientFd
    this.#client = client
  }

  /** Tries the next backend, and another at once if that fails at once. */
  next(): void {
    const { shared, options } = this.#pool
    const { reactor } = shared.relays
    while (this.#tries < TRY_TIMEOUTS_MS.length) {
      this.#backend = options.balancer.pick(this.#client, reactor.nowMs)
      if (this.#backend === undefined) break
      this.#backendFd = openSocket(options.family, 'TCP')
      if (this.#backendFd === -1) {
        shared.warn(`Cannot connect to a backend: ${lastErrno()}`)
        break
      }
      if (this.#tries++ > 0) options.counters[RETRIES]!++
      const { address } = this.#backend
      if (shared.connect(this.#backendFd, address, address.length) === 0 || lastErrno() === 'EINPROGRESS') {
        shared.tries[this.#tries - 1]!.start(this, reactor.nowMs)
        reactor.watch(this.#backendFd, STREAM_EVENTS, this)
        return
      }
      this.#failed()
    }
    this.#giveUp()
  }

  onEvents(events: number): void {
    if ((events & FAILED) !== 0) {
      this.#stopTimer()
      this.#failed()
      this.next()
    } else if ((events & WRITABLE) !== 0) {
      this.#stopTimer()
      this.#succeed(events)
    }
  }

  timeOut(): void {
    this.#failed()
    this.next()
  }

  #succeed(events: number): void {
    const { shared, options } = this.#pool
    const { reactor } = shared.relays
    options.balancer.worked(this.#backend!)
    options.balancer.remember(this.#backend!, this.#client, reactor.nowMs)
    const { client, backend } = shared.relays.join(this.#clientFd, this.#backendFd, options.counters)
    reactor.handOver(this.#backendFd, backend)
    reactor.watch(this.#clientFd, STREAM_EVENTS, client)
    backend.onEvents(events)
  }

  #failed(): void {
    const { shared, options } = this.#pool
    options.counters[FAILURES]!++
    options.balancer.failed(this.#backend!, this.#client, shared.relays.reactor.nowMs)
    shared.relays.reactor.close(this.#backendFd)
  }

  /** As near to a refused connection as one gets after accepting it. */
  #giveUp(): void {
    this.#pool.options.counters[UNSERVED]!++
    resetOnClose(this.#clientFd)
    this.#pool.shared.relays.reactor.close(this.#clientFd)
  }

  #stopTimer(): void {
    this.#pool.shared.tries[this.#tries - 1]!.stop(this)
  }
}
