// TCP: accepts, finds a backend that answers, and joins the two.

import { boundCall, lastErrno, tryCall } from '../system/libc.ts'
import type { Family } from '../lib/ip.ts'
import type { Balancer, PoolBackend } from './balancer.ts'
import { ACTIVE, CONNECTIONS, FAILURES, RETRIES, UNSERVED } from './pool-board.ts'
import { FAILED, READABLE, STREAM_EVENTS, type EventHandler, WRITABLE } from './event-loop.ts'
import { noRoomToWatch, type Relays } from './relay.ts'
import type { SeenAs } from './seen-as.ts'
import { type ClientSources, isDisguised, type ShownClient } from './client-sources.ts'
import { ADDRESS_LENGTH, hostKey, type HostKey } from '../system/socket-address.ts'
import { BACKLOG, resetOnClose, SOCK_CLOEXEC, SOCK_NONBLOCK } from './sockets.ts'
import type { SpareSockets } from './spare-sockets.ts'
import { BEGUN } from './backend-counters.ts'
import type { TimerQueue } from './timer-queue.ts'

/** How long the first, second ... backend has to answer. There are as many tries as there are times. */
export const TRY_TIMEOUTS_MS = [250, 500, 1000, 2000] as const

/** How long no client is accepted when this process has run out of file descriptors or memory. */
const PAUSE_MS = 100
/** How many are accepted before others get their turn. */
const MOST_AT_ONCE = 16

/** How often a connection begins at another port because the first is still in use. The last time the node is seen. */
const SOURCE_PORTS_TRIED = 4

/** The kind of record by which a client is handed over: its socket, and the listener that it came in by. */
export const CLIENT_MESSAGE = 1

const EXHAUSTED: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM'])
/** Of connect(): no port is free for this backend, or no memory. It has not been asked at all. */
const OWN_FAULT: ReadonlySet<string> = new Set([...EXHAUSTED, 'EADDRNOTAVAIL', 'EADDRINUSE', 'EAGAIN'])

export interface TcpSharedOptions {
  readonly sources: ClientSources
  readonly spares: SpareSockets
  readonly warn: (message: string) => void
}

/** What all TCP listeners of a thread use together. */
export class TcpShared {
  readonly relays: Relays
  readonly sources: ClientSources
  readonly spares: SpareSockets
  readonly warn: (message: string) => void
  readonly accept: ReturnType<typeof boundCall<'accept4'>> = boundCall('accept4')
  readonly connect: ReturnType<typeof boundCall<'connect'>> = boundCall('connect')
  readonly address: Uint8Array = new Uint8Array(ADDRESS_LENGTH)
  readonly addressLength: Uint32Array = new Uint32Array(1)
  readonly tries: readonly TimerQueue<Attempt>[]
  readonly paused: TimerQueue<TcpListener>

  constructor(relays: Relays, { sources, spares, warn }: TcpSharedOptions) {
    const { loop } = relays
    this.relays = relays
    this.sources = sources
    this.spares = spares
    this.warn = warn
    this.tries = TRY_TIMEOUTS_MS.map((ms) => loop.timers(ms, (attempt: Attempt) => attempt.timeOut()))
    this.paused = loop.timers(PAUSE_MS, (listener) => listener.goOn())
  }
}

export interface TcpListenerOptions {
  /** By which numbers all threads know the listener and its pool. */
  readonly id: number
  readonly pool: number
  readonly fd: number
  /** Whether this thread is the one that lets clients in. */
  readonly isKeeper: boolean
  readonly family: Family
  readonly balancer: Balancer
  readonly counters: Float64Array
  /** Whose address backends see. */
  readonly seenAs: SeenAs
  /** Where connections begin whose source is then replaced. */
  readonly node: Uint8Array
}

export class TcpListener implements EventHandler {
  readonly options: TcpListenerOptions
  readonly shared: TcpShared
  #isClosed = false
  #isWatched = false
  #expected = 1

  constructor(shared: TcpShared, options: TcpListenerOptions) {
    this.shared = shared
    this.options = options
    if (options.isKeeper) this.#watch()
  }

  /** As many as there were the last time, and more if there are. */
  onEvents(): void {
    let accepted = 0
    while (accepted < this.#expected && this.#acceptOne()) accepted++
    this.#expected = accepted < this.#expected ? 1 : Math.min(accepted * 2, MOST_AT_ONCE)
  }

  goOn(): void {
    if (this.#isClosed) return
    if (this.#isWatched) this.shared.relays.loop.change(this.options.fd, READABLE)
    else this.#watch()
  }

  /** Serves a client that another thread has let in, unless it is gone: then there is no address to be told. */
  serveAccepted(clientFd: number): void {
    const { relays, address, addressLength } = this.shared
    addressLength[0] = ADDRESS_LENGTH
    if (tryCall('getpeername', clientFd, address, addressLength) === 0) this.#serve(clientFd)
    else relays.loop.close(clientFd)
  }

  /** Serves the clients that wait in the kernel's queue, but not for as long as more keep coming. */
  close(): void {
    this.#isClosed = true
    if (!this.options.isKeeper) return
    for (let left = BACKLOG; left > 0 && this.#acceptOne(); left--);
    this.shared.relays.loop.close(this.options.fd)
  }

  /** Tries again after a pause when there is no room: clients wait in the kernel's queue meanwhile. */
  #watch(): void {
    const { relays, paused, warn } = this.shared
    this.#isWatched = relays.loop.watch(this.options.fd, READABLE, this)
    if (this.#isWatched) return
    warn(noRoomToWatch())
    paused.start(this, relays.loop.nowMs)
  }

  /** A client is accepted only when there is a socket for its backend; until then it waits in the kernel's queue. */
  #acceptOne(): boolean {
    const { accept, address, addressLength, spares } = this.shared
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
    const { workers } = this.shared.relays
    const helper = this.options.balancer.isSticky ? undefined : workers.helper()
    return helper !== undefined && workers.send(helper, [CLIENT_MESSAGE, clientFd, this.options.id])
  }

  /** Clients wait in the kernel's queue meanwhile. */
  #pause(errno: string): void {
    const { relays, paused, warn } = this.shared
    warn(`Cannot accept connections for the moment: ${errno}`)
    if (this.#isClosed) return
    relays.loop.change(this.options.fd, 0)
    paused.start(this, relays.loop.nowMs)
  }
}

/** A client that has no backend yet. */
class Attempt implements EventHandler {
  readonly #listener: TcpListener
  readonly #clientFd: number
  readonly #address: Uint8Array
  readonly #client: HostKey
  #backend: PoolBackend | undefined
  #backendFd = -1
  #shown: ShownClient | undefined
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
    const { shared, options } = this.#listener
    const { loop } = shared.relays
    while (this.#tries < TRY_TIMEOUTS_MS.length) {
      const backend = options.balancer.pick(this.#client, loop.nowMs)
      if (backend === undefined) break
      if (this.#tries++ > 0) options.counters[RETRIES]!++
      this.#backend = backend
      this.#triedMs = loop.nowMs
      const outcome = this.#connect(backend)
      if (outcome === 'under way' && loop.watch(this.#backendFd, STREAM_EVENTS, this)) {
        shared.tries[this.#tries - 1]!.start(this, loop.nowMs)
        return
      }
      if (outcome === 'under way') {
        shared.warn(noRoomToWatch())
        this.#leaveBackend()
        break
      }
      if (outcome === 'no socket') break
      if (outcome === 'failed') this.#failed()
      else this.#leaveBackend()
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

  #connect({ address }: PoolBackend): 'under way' | 'failed' | 'our fault' | 'no socket' {
    const { shared, options } = this.#listener
    for (let ports = SOURCE_PORTS_TRIED; ; ports--) {
      this.#backendFd = shared.spares.take(options.family, 'TCP')
      if (this.#backendFd === -1) {
        shared.warn(`Cannot connect to a backend: ${shared.spares.errno}`)
        return 'no socket'
      }
      if (!this.#disguise(address, ports > 0)) {
        this.#leaveBackend()
        continue
      }
      if (shared.connect(this.#backendFd, address, address.length) === 0) return 'under way'
      const errno = lastErrno()
      if (errno === 'EINPROGRESS') return 'under way'
      // The port is still used by a connection to this backend that is about to end.
      if (errno === 'EADDRNOTAVAIL' && this.#shown !== undefined) this.#leaveBackend()
      else if (!OWN_FAULT.has(errno)) return 'failed'
      else {
        shared.warn(`Cannot connect to a backend: ${errno}`)
        return 'our fault'
      }
    }
  }

  /** False when the socket must not connect. */
  #disguise(backend: Uint8Array, hasPortsLeft: boolean): boolean {
    const { shared, options } = this.#listener
    const { family, node, seenAs } = options
    const disguise = { family, protocol: 'TCP', node, backend, client: this.#address } as const
    if (!isDisguised(seenAs, disguise)) return true
    if (!hasPortsLeft) {
      shared.sources.noPortIsFree()
      return true
    }
    const shown = shared.sources.disguise(this.#backendFd, disguise)
    if (shown === 'spent') return false
    this.#shown = shown
    return true
  }

  #succeed(events: number): void {
    const { shared, options } = this.#listener
    const { loop } = shared.relays
    options.balancer.worked(this.#backend!)
    options.balancer.remember(this.#backend!, this.#client, loop.nowMs)
    shared.relays.backendCounters.add(this.#backend!.serial, BEGUN, 1)
    const relay = shared.relays.join({
      clientFd: this.#clientFd,
      backendFd: this.#backendFd,
      pool: options.pool,
      serial: this.#backend!.serial,
      counters: options.counters,
      shown: this.#shown,
    })
    if (!relay.isOver) relay.backend.onEvents(events)
  }

  #failed(): void {
    const { shared, options } = this.#listener
    options.counters[FAILURES]!++
    options.balancer.failed(this.#backend!, this.#client, shared.relays.loop.nowMs, this.#triedMs)
    this.#leaveBackend()
  }

  #leaveBackend(): void {
    const { relays, sources } = this.#listener.shared
    const shown = this.#shown
    this.#shown = undefined
    relays.loop.close(this.#backendFd, shown && (() => sources.over(shown)))
  }

  /** As near to a refused connection as one gets after accepting it. */
  #giveUp(): void {
    this.#listener.options.counters[UNSERVED]!++
    this.#listener.options.counters[ACTIVE]!--
    resetOnClose(this.#clientFd)
    this.#listener.shared.relays.loop.close(this.#clientFd)
  }

  #stopTimer(): void {
    this.#listener.shared.tries[this.#tries - 1]!.stop(this)
  }
}
