// TCP: accepts, finds a backend that answers, and joins the two.

import { boundCall, lastErrno, tryCall } from '../system/libc.ts'
import type { PoolBackend } from './balancer.ts'
import { type BackendSocket, closeBackendSocket, connectToBackend } from './connect-backend.ts'
import { ACTIVE, CONNECTIONS, FAILURES, RETRIES, UNSERVED } from './pool-board.ts'
import { type EventHandler, FAILED, STREAM_EVENTS, WRITABLE } from './event-loop.ts'
import { Listener, type ListenerOptions } from './listener.ts'
import type { Relays } from './relay.ts'
import { ADDRESS_LENGTH, hostKey, type HostKey } from '../system/socket-address.ts'
import { BACKLOG, resetOnClose, SOCK_CLOEXEC, SOCK_NONBLOCK } from './sockets.ts'
import { BEGUN } from './backend-counters.ts'
import { type ThreadContext, watchOrWarn } from './thread-context.ts'
import type { TimerQueue } from './timer-queue.ts'

/** How long the first, second ... backend has to answer. There are as many tries as there are times. */
export const TRY_TIMEOUTS_MS = [250, 500, 1000, 2000] as const

/** How many are accepted before others get their turn. */
const MOST_AT_ONCE = 16

/** The kind of message by which a client is handed over: its socket, and its listener. */
export const CLIENT_MESSAGE = 1

const EXHAUSTED: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM'])

/** What all TCP listeners of a thread use together. */
export class TcpShared {
  readonly relays: Relays
  readonly accept: ReturnType<typeof boundCall<'accept4'>> = boundCall('accept4')
  readonly address: Uint8Array = new Uint8Array(ADDRESS_LENGTH)
  readonly addressLength: Uint32Array = new Uint32Array(1)
  readonly tries: readonly TimerQueue<Attempt>[]

  constructor({ loop }: ThreadContext, relays: Relays) {
    this.relays = relays
    this.tries = TRY_TIMEOUTS_MS.map((ms) => loop.timers(ms, (attempt: Attempt) => attempt.fail()))
  }
}

export class TcpListener extends Listener {
  readonly shared: TcpShared
  #expected = 1

  constructor(context: ThreadContext, options: ListenerOptions, shared: TcpShared) {
    super(context, options)
    this.shared = shared
  }

  /** As many as there were the last time, and more if there are. */
  onEvents(): void {
    let accepted = 0
    while (accepted < this.#expected && this.#acceptOne()) accepted++
    this.#expected = accepted < this.#expected ? 1 : Math.min(accepted * 2, MOST_AT_ONCE)
  }

  /** Serves a client that another thread has accepted. One that is gone has no address any more. */
  serveAccepted(clientFd: number): void {
    const { address, addressLength } = this.shared
    addressLength[0] = ADDRESS_LENGTH
    if (tryCall('getpeername', clientFd, address, addressLength) === 0) this.#serve(clientFd)
    else this.context.loop.close(clientFd)
  }

  /** Those in the kernel's queue, but not for as long as more keep coming. */
  protected serveLast(): void {
    for (let left = BACKLOG; left > 0 && this.#acceptOne(); left--);
  }

  /** A client is accepted only when there is a socket for its backend; until then it waits in the kernel's queue. */
  #acceptOne(): boolean {
    const { accept, address, addressLength } = this.shared
    const { spares } = this.context
    if (!spares.prepare(this.options.family)) {
      this.#pause(spares.errno)
      return false
    }
    addressLength[0] = ADDRESS_LENGTH
    const clientFd = accept(this.options.fd, address, addressLength, SOCK_NONBLOCK | SOCK_CLOEXEC)
    if (clientFd === -1) {
      const errno = lastErrno()
      if (EXHAUSTED.has(errno)) this.#pause(errno)
      return false
    }
    if (!this.#handOver(clientFd)) this.#serve(clientFd)
    return true
  }

  /** The address is that of the client. */
  #serve(clientFd: number): void {
    const { address, addressLength } = this.shared
    this.options.counters[CONNECTIONS]!++
    this.options.counters[ACTIVE]!++
    new Attempt(this, clientFd, address.slice(0, addressLength[0])).next()
  }

  /** Gives a client to another thread, if this one is busy. Only this thread knows which client had which backend. */
  #handOver(clientFd: number): boolean {
    const { workers } = this.context
    const helper = this.options.balancer.isSticky ? undefined : workers.helper()
    return helper !== undefined && workers.send(helper, [CLIENT_MESSAGE, clientFd, this.options.id])
  }

  #pause(errno: string): void {
    this.context.warn(`Cannot accept connections for the moment: ${errno}`)
    this.pause()
  }
}

/** A client that has no backend yet. */
class Attempt implements EventHandler {
  readonly #listener: TcpListener
  readonly #clientFd: number
  readonly #address: Uint8Array
  readonly #client: HostKey
  #backend: PoolBackend | undefined
  #socket: BackendSocket | undefined
  #tries = 0
  #triedMs = 0

  constructor(listener: TcpListener, clientFd: number, address: Uint8Array) {
    this.#listener = listener
    this.#clientFd = clientFd
    this.#address = address
    this.#client = hostKey(address)
  }

  /** Tries the next backend, and another at once if that fails at once. */
  next(): void {
    const { shared, options, context } = this.#listener
    const { nowMs } = context.loop
    while (this.#tries < TRY_TIMEOUTS_MS.length) {
      const backend = options.balancer.pick(this.#client, nowMs, this.#address)
      if (backend === undefined) break
      if (this.#tries++ > 0) options.counters[RETRIES]!++
      this.#backend = backend
      this.#triedMs = nowMs
      const target = { protocol: 'TCP', backend: backend.address, client: this.#address } as const
      const socket = connectToBackend(context, options, target)
      if (socket === 'no socket') break
      if (socket === 'failed') this.#countFailure()
      if (typeof socket === 'string') continue
      this.#socket = socket
      if (watchOrWarn(context, socket.fd, STREAM_EVENTS, this)) {
        shared.tries[this.#tries - 1]!.start(this, nowMs)
        return
      }
      closeBackendSocket(context, socket)
      break
    }
    this.#giveUp()
  }

  onEvents(events: number): void {
    if ((events & (FAILED | WRITABLE)) === 0) return
    this.#listener.shared.tries[this.#tries - 1]!.stop(this)
    if ((events & FAILED) !== 0) this.fail()
    else this.#succeed(events)
  }

  /** The backend has not answered, or has refused. */
  fail(): void {
    this.#countFailure()
    closeBackendSocket(this.#listener.context, this.#socket!)
    this.next()
  }

  #succeed(events: number): void {
    const { shared, options, context } = this.#listener
    const backend = this.#backend!
    options.balancer.worked(backend)
    options.balancer.remember(backend, this.#client, context.loop.nowMs)
    context.backendCounters.add(backend.serial, BEGUN, 1)
    const { fd, shown } = this.#socket!
    const relay = shared.relays.join({
      clientFd: this.#clientFd,
      backendFd: fd,
      pool: options.pool,
      serial: backend.serial,
      counters: options.counters,
      shown,
    })
    if (!relay.isOver) relay.backend.onEvents(events)
  }

  #countFailure(): void {
    const { options, context } = this.#listener
    options.counters[FAILURES]!++
    options.balancer.failed(this.#backend!, this.#client, context.loop.nowMs, this.#triedMs)
  }

  /** As near to a refused connection as one gets after accepting it. */
  #giveUp(): void {
    const { options, context } = this.#listener
    options.counters[UNSERVED]!++
    options.counters[ACTIVE]!--
    resetOnClose(this.#clientFd)
    context.loop.close(this.#clientFd)
  }
}
