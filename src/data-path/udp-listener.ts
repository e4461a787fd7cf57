// UDP: each client has a socket of its own to its backend, until both are silent for a while and no answer is awaited. Which
// backend that was is remembered for longer: a flow stays where it is while its backend serves, as in the other modes.

import { boundCall, lastErrno } from '../system/libc.ts'
import type { Family } from '../lib/ip.ts'
import { AffinityTable } from './affinity-table.ts'
import type { Balancer, PoolBackend } from './balancer.ts'
import { ACTIVE, CONNECTIONS, FAILURES, RETRIES, TO_BACKENDS, TO_CLIENTS, UNSERVED } from './pool-board.ts'
import { READABLE, type EventLoop, type EventHandler } from './event-loop.ts'
import type { SeenAs } from './seen-as.ts'
import { type ClientSources, isDisguised, type ShownClient } from './client-sources.ts'
import { ADDRESS_LENGTH, clientKey, hostKey } from '../system/socket-address.ts'
import { noRoomToWatch } from './relay.ts'
import type { SpareSockets } from './spare-sockets.ts'
import {
  BEGUN,
  RECEIVED_BYTES,
  RECEIVED_PACKETS,
  SENT_BYTES,
  SENT_PACKETS,
  type BackendCounters,
} from './backend-counters.ts'
import type { TimerQueue } from './timer-queue.ts'

const LARGEST_DATAGRAM = 65_535
/** How many datagrams one socket may pass before others get their turn. */
const BATCH = 64
const MSG_NOSIGNAL = 0x4000
/** How long it takes until a listener is tried again that could not be watched. */
const PAUSE_MS = 100
/** Backends that are tried for one datagram. */
const TRIES = 4
/** How long a question may wait for its answer: what resolvers wait before they ask again. */
const ANSWER_MS = 5000
/** As long as the connection tracker keeps a flow that was answered, which decides it in the other modes. */
const FLOW_MEMORY_MS = 120_000
/** How many flows of a listener are remembered at least. */
const FLOWS_REMEMBERED = 16_384
/** More clients at once than this are no use to one listener, and cost the kernel much. */
const MOST_CLIENTS = 8192

/** What happens to datagrams all the time, or is for want of something on this node: not the backend's fault. */
const LOSSES: ReadonlySet<string> = new Set(['EAGAIN', 'ENOBUFS', 'ENOMEM', 'EMSGSIZE', 'EINTR'])
/** Of connect(): no port is free, or no memory. The backend has not been asked at all. */
const OWN_FAULT: ReadonlySet<string> = new Set([...LOSSES, 'EADDRNOTAVAIL', 'EADDRINUSE', 'EMFILE', 'ENFILE'])

/** How many sockets are tried that begin where the connection tracker still knows another client. Then the node is seen. */
const SOCKETS_TRIED = 4

/** How many UDP clients there may be at once. */
export interface UdpLimits {
  readonly perListener: number
  /** Of all listeners of a thread. */
  readonly perThread: number
}

/**
 * A UDP client costs its sender one datagram, and any host can send it. So a flood gets at most an eighth of the file descriptors
 * that connections may take, and many floods together at most half of them.
 */
export function udpLimits(endFd: number, threads: number): UdpLimits {
  const perThread = Math.max(1, Math.floor(endFd / 2 / threads))
  return { perThread, perListener: Math.max(1, Math.min(MOST_CLIENTS, endFd >> 3, perThread)) }
}

export interface UdpSharedOptions {
  /** How long a client is remembered that is silent. */
  readonly idleMs: number
  readonly sources: ClientSources
  readonly spares: SpareSockets
  readonly warn: (message: string) => void
  readonly limits: UdpLimits
  readonly backendCounters: BackendCounters
}

/** What all UDP listeners of a thread use together. */
export class UdpShared {
  readonly loop: EventLoop
  readonly sources: ClientSources
  readonly spares: SpareSockets
  readonly warn: (message: string) => void
  readonly limits: UdpLimits
  readonly backendCounters: BackendCounters
  readonly idle: TimerQueue<UdpSession>
  /** Those that are kept only because an answer may still come. */
  readonly awaiting: TimerQueue<UdpSession>
  readonly paused: TimerQueue<UdpListener>
  /** Clients of all listeners. */
  clients = 0
  readonly buffer: Uint8Array = new Uint8Array(LARGEST_DATAGRAM)
  readonly address: Uint8Array = new Uint8Array(ADDRESS_LENGTH)
  readonly addressLength: Uint32Array = new Uint32Array(1)
  readonly recvfrom: ReturnType<typeof boundCall<'recvfrom'>> = boundCall('recvfrom')
  readonly recv: ReturnType<typeof boundCall<'recv'>> = boundCall('recv')
  readonly send: ReturnType<typeof boundCall<'send'>> = boundCall('send')
  readonly sendto: ReturnType<typeof boundCall<'sendto'>> = boundCall('sendto')
  readonly connect: ReturnType<typeof boundCall<'connect'>> = boundCall('connect')

  constructor(loop: EventLoop, { idleMs, sources, spares, warn, limits, backendCounters }: UdpSharedOptions) {
    this.loop = loop
    this.sources = sources
    this.spares = spares
    this.warn = warn
    this.limits = limits
    this.backendCounters = backendCounters
    this.idle = loop.timers(idleMs, (session) => session.mayEnd())
    this.awaiting = loop.timers(ANSWER_MS, (session) => session.mayEnd())
    this.paused = loop.timers(PAUSE_MS, (listener) => listener.goOn())
  }
}

export interface UdpListenerOptions {
  /** By which number all threads know the pool. */
  readonly pool: number
  readonly fd: number
  /** Whether this thread is the one that serves the listener. */
  readonly isKeeper: boolean
  readonly family: Family
  readonly balancer: Balancer
  readonly counters: Float64Array
  /** Whose address backends see. */
  readonly seenAs: SeenAs
  /** Where flows begin whose source is then replaced. */
  readonly node: Uint8Array
}

export class UdpListener implements EventHandler {
  readonly options: UdpListenerOptions
  readonly shared: UdpShared
  readonly #sessions = new Map<number | string, UdpSession>()
  /** Those whose backend was removed: they only wait for answers. */
  readonly #leaving = new Set<UdpSession>()
  readonly #flows = new AffinityTable(FLOW_MEMORY_MS, FLOWS_REMEMBERED)
  #isClosed = false

  constructor(shared: UdpShared, options: UdpListenerOptions) {
    this.shared = shared
    this.options = options
    if (options.isKeeper) this.goOn()
  }

  /** Watches the listener; after a pause when there is no room for that. Datagrams wait in the kernel's queue meanwhile. */
  goOn(): void {
    const { loop, warn, paused } = this.shared
    if (this.#isClosed || loop.watch(this.options.fd, READABLE, this)) return
    warn(noRoomToWatch())
    paused.start(this, loop.nowMs)
  }

  onEvents(): void {
    const { recvfrom, buffer, address, addressLength } = this.shared
    for (let i = 0; i < BATCH; i++) {
      addressLength[0] = ADDRESS_LENGTH
      const length = recvfrom(this.options.fd, buffer, LARGEST_DATAGRAM, 0, address, addressLength)
      if (length === -1) return
      this.#passOn(length)
    }
  }

  /** Backends were removed: datagrams of their clients go elsewhere from now on, as in the other modes. */
  leaveRemoved(): void {
    for (const session of this.#sessions.values()) {
      if (this.options.balancer.has(session.backend)) continue
      this.#sessions.delete(session.key)
      this.#leaving.add(session)
      session.leave()
    }
  }

  /** Clients of this listener can no longer be answered. */
  close(): void {
    if (!this.options.isKeeper) return
    this.#isClosed = true
    this.onEvents()
    for (const session of [...this.#sessions.values(), ...this.#leaving]) session.end()
    this.shared.loop.close(this.options.fd)
  }

  /** A session is over. Its client comes to the same backend again, unless that has failed. */
  forget(session: UdpSession, { hasFailed, usedMs }: { hasFailed: boolean; usedMs: number }): void {
    if (this.#leaving.delete(session)) return
    if (this.#sessions.get(session.key) === session) this.#sessions.delete(session.key)
    if (hasFailed) this.#flows.forget(session.key)
    else this.#flows.remember(session.key, session.backend.id, usedMs)
  }

  #passOn(length: number): void {
    const { counters } = this.options
    const key = clientKey(this.shared.address)
    for (let tries = 0; tries < TRIES; tries++) {
      const session = this.#sessions.get(key) ?? this.#open(key)
      if (session === 'nowhere') break
      if (tries > 0) counters[RETRIES]!++
      if (session !== 'failed' && session.send(length)) {
        counters[TO_BACKENDS]! += length
        this.shared.backendCounters.add(session.backend.serial, SENT_PACKETS, 1)
        this.shared.backendCounters.add(session.backend.serial, SENT_BYTES, length)
        return
      }
    }
    counters[UNSERVED]!++
  }

  /** 'failed': the backend cannot be reached; 'nowhere': there is none, or no room for another client. */
  #open(key: number | string): UdpSession | 'failed' | 'nowhere' {
    const { shared, options } = this
    const { nowMs } = shared.loop
    const client = hostKey(shared.address)
    const backend = this.#backendOf(key, nowMs) ?? options.balancer.pick(client, nowMs)
    if (backend === undefined || !this.#hasRoom()) return 'nowhere'
    const fd = shared.spares.take(options.family, 'UDP')
    if (fd === -1) {
      shared.warn(`Cannot open a socket for a client: ${shared.spares.errno}`)
      return 'nowhere'
    }
    const session = new UdpSession(this, {
      key,
      fd,
      backend,
      address: shared.address.slice(0, shared.addressLength[0]),
    })
    this.#sessions.set(key, session)
    const begun = session.begin()
    if (begun !== 'begun') return begun
    options.balancer.remember(backend, client, nowMs)
    shared.backendCounters.add(backend.serial, BEGUN, 1)
    return session
  }

  /** The backend that this client came to before, if it still serves. */
  #backendOf(key: number | string, nowMs: number): PoolBackend | undefined {
    const id = this.#flows.find(key, nowMs)
    return id === undefined ? undefined : this.options.balancer.find(id)
  }

  /** Whether there is so much room that clients may wait for answers in it: backends that never answer are not to fill it. */
  get hasMuchRoom(): boolean {
    const { limits, clients } = this.shared
    return this.#clients < limits.perListener / 4 && clients < limits.perThread / 4
  }

  get #clients(): number {
    return this.#sessions.size + this.#leaving.size
  }

  #hasRoom(): boolean {
    const { limits, clients, warn } = this.shared
    if (this.#clients < limits.perListener && clients < limits.perThread) return true
    const [what, most] =
      clients < limits.perThread ? ['one service port', limits.perListener] : ['a thread', limits.perThread]
    warn(`Cannot serve more UDP clients of ${what} at once than ${most}: datagrams of others are dropped`)
    return false
  }
}

interface SessionOptions {
  readonly key: number | string
  readonly fd: number
  readonly backend: PoolBackend
  /** The client's. */
  readonly address: Uint8Array
}

/** One client and its backend. */
class UdpSession implements EventHandler {
  readonly key: number | string
  readonly backend: PoolBackend
  readonly #listener: UdpListener
  #fd: number
  readonly #address: Uint8Array
  readonly #openedMs: number
  #usedMs: number
  /** The client has asked, and nothing has come back since. */
  #isAwaiting = false
  #hasLeft = false
  #shown: ShownClient | undefined
  #hasAnswered = false
  #hasFailed = false
  #isOver = false

  constructor(listener: UdpListener, { key, fd, backend, address }: SessionOptions) {
    const { shared, options } = listener
    this.key = key
    this.#listener = listener
    this.#fd = fd
    this.backend = backend
    this.#address = address
    this.#openedMs = this.#usedMs = shared.loop.nowMs
    options.counters[CONNECTIONS]!++
    options.counters[ACTIVE]!++
    shared.clients++
  }

  /** Connects to the backend. When that is not possible the session is over. */
  begin(): 'begun' | 'failed' | 'nowhere' {
    const { shared } = this.#listener
    const { address } = this.backend
    if (!this.#disguise()) {
      shared.warn(`Cannot connect to a backend: ${shared.spares.errno}`)
    } else if (shared.connect(this.#fd, address, address.length) === -1) {
      const errno = lastErrno()
      if (!OWN_FAULT.has(errno)) {
        this.#fail()
        return 'failed'
      }
      shared.warn(`Cannot connect to a backend: ${errno}`)
    } else if (shared.loop.watch(this.#fd, READABLE, this)) {
      shared.idle.start(this, this.#usedMs)
      return 'begun'
    } else {
      shared.warn(noRoomToWatch())
    }
    this.end()
    return 'nowhere'
  }

  /** Makes the backend see the client, if it is to; false when there is no socket left. */
  #disguise(): boolean {
    const { shared, options } = this.#listener
    const { family, node, seenAs } = options
    const disguise = { family, protocol: 'UDP', node, backend: this.backend.address, client: this.#address } as const
    if (!isDisguised(seenAs, disguise)) return true
    for (let sockets = SOCKETS_TRIED; sockets > 0; sockets--) {
      const shown = shared.sources.disguise(this.#fd, disguise)
      if (shown !== 'spent') {
        this.#shown = shown
        return true
      }
      shared.loop.close(this.#fd)
      this.#fd = shared.spares.take(family, 'UDP')
      if (this.#fd === -1) return false
    }
    shared.sources.noPortIsFree()
    return true
  }

  /** Sends what is in the buffer to the backend; false when that is known not to listen. */
  send(length: number): boolean {
    const { shared } = this.#listener
    this.#usedMs = shared.loop.nowMs
    this.#isAwaiting = true
    if (shared.send(this.#fd, shared.buffer, length, MSG_NOSIGNAL) !== -1) return true
    if (LOSSES.has(lastErrno())) return true
    this.#fail()
    return false
  }

  /** Answers of the backend. */
  onEvents(): void {
    const { shared, options } = this.#listener
    const { buffer } = shared
    for (let i = 0; i < BATCH && !this.#isOver; i++) {
      const length = shared.recv(this.#fd, buffer, LARGEST_DATAGRAM, 0)
      if (length === -1) {
        if (!LOSSES.has(lastErrno())) this.#fail()
        return
      }
      // One that has left is not kept by a backend that goes on talking.
      if (!this.#hasLeft) this.#usedMs = shared.loop.nowMs
      this.#isAwaiting = false
      if (!this.#hasAnswered) options.balancer.worked(this.backend)
      this.#hasAnswered = true
      const sent = shared.sendto(options.fd, buffer, length, MSG_NOSIGNAL, this.#address, this.#address.length)
      if (sent === -1) continue
      options.counters[TO_CLIENTS]! += length
      shared.backendCounters.add(this.backend.serial, RECEIVED_PACKETS, 1)
      shared.backendCounters.add(this.backend.serial, RECEIVED_BYTES, length)
    }
  }

  /** Its backend was removed: what it still answers is passed on, and the client comes to another with its next datagram. */
  leave(): void {
    this.#hasLeft = true
  }

  /** The time is over, unless something came meanwhile, or may still come. */
  mayEnd(): void {
    const { idle, awaiting, loop } = this.#listener.shared
    const silentMs = loop.nowMs - this.#usedMs
    if (silentMs < idle.durationMs) idle.start(this, this.#usedMs)
    else if (this.#isAwaiting && silentMs < awaiting.durationMs && this.#listener.hasMuchRoom) {
      awaiting.start(this, this.#usedMs)
    } else this.end()
  }

  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    const { shared, options } = this.#listener
    options.counters[ACTIVE]!--
    shared.clients--
    shared.idle.stop(this)
    shared.awaiting.stop(this)
    const shown = this.#shown
    shared.loop.close(this.#fd, shown && (() => shared.sources.over(shown)))
    this.#listener.forget(this, { hasFailed: this.#hasFailed, usedMs: this.#usedMs })
  }

  /** The backend's host, or one on the way there, has said that datagrams do not arrive. */
  #fail(): void {
    this.#hasFailed = true
    const { shared, options } = this.#listener
    options.counters[FAILURES]!++
    // The affinity of a client that has left its backend is to another by now.
    if (!this.#hasLeft) options.balancer.failed(this.backend, hostKey(this.#address), shared.loop.nowMs, this.#openedMs)
    this.end()
  }
}
