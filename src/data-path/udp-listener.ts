// UDP: each client has a socket of its own to its backend, until both are silent for a while and no answer is awaited. The listener
// keeps the client's backend for longer: a flow stays where it is while its backend serves, as in the other modes.

import { boundCall, lastErrno } from '../system/libc.ts'
import { AffinityTable } from './affinity-table.ts'
import { BEGUN, RECEIVED_BYTES, RECEIVED_PACKETS, SENT_BYTES, SENT_PACKETS } from './backend-counters.ts'
import type { PoolBackend } from './balancer.ts'
import { type BackendSocket, closeBackendSocket, connectToBackend } from './connect-backend.ts'
import { ACTIVE, CONNECTIONS, FAILURES, RETRIES, TO_BACKENDS, TO_CLIENTS, UNSERVED } from './pool-board.ts'
import { type EventHandler, READABLE } from './event-loop.ts'
import { Listener, type ListenerOptions } from './listener.ts'
import { ADDRESS_LENGTH, clientKey, hostKey } from '../system/socket-address.ts'
import { type ThreadContext, watchOrWarn } from './thread-context.ts'
import type { TimerQueue } from './timer-queue.ts'

const LARGEST_DATAGRAM = 65_535
/** How many datagrams one socket may pass before others get their turn. */
const BATCH = 64
const MSG_NOSIGNAL = 0x4000
/** Backends that are tried for one datagram. */
const TRIES = 4
/** How long a request may wait for its answer: resolvers ask again after this time. */
const ANSWER_MS = 5000
/** As long as the connection tracker keeps a flow that was answered, which decides it in the other modes. */
const FLOW_MEMORY_MS = 120_000
/** A listener keeps the backends of at least so many flows. */
const MIN_FLOWS = 16_384
/** More clients at once than this are no use to one listener, and cost the kernel much. */
const MOST_CLIENTS = 8192

/** Losses that are usual, or for lack of resources on this node: not the backend's fault. */
const LOSSES: ReadonlySet<string> = new Set(['EAGAIN', 'ENOBUFS', 'ENOMEM', 'EMSGSIZE', 'EINTR'])

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
  /** A session ends when its client is silent for so long. */
  readonly idleMs: number
  readonly limits: UdpLimits
}

/** What all UDP listeners of a thread use together. */
export class UdpShared {
  readonly limits: UdpLimits
  readonly idle: TimerQueue<UdpSession>
  /** Sessions that are kept only because an answer may still come. */
  readonly awaiting: TimerQueue<UdpSession>
  /** Clients of all listeners. */
  clients = 0
  readonly buffer: Uint8Array = new Uint8Array(LARGEST_DATAGRAM)
  readonly address: Uint8Array = new Uint8Array(ADDRESS_LENGTH)
  readonly addressLength: Uint32Array = new Uint32Array(1)
  readonly recvfrom: ReturnType<typeof boundCall<'recvfrom'>> = boundCall('recvfrom')
  readonly recv: ReturnType<typeof boundCall<'recv'>> = boundCall('recv')
  readonly send: ReturnType<typeof boundCall<'send'>> = boundCall('send')
  readonly sendto: ReturnType<typeof boundCall<'sendto'>> = boundCall('sendto')

  constructor({ loop }: ThreadContext, { idleMs, limits }: UdpSharedOptions) {
    this.limits = limits
    this.idle = loop.timers(idleMs, (session) => session.mayEnd())
    this.awaiting = loop.timers(ANSWER_MS, (session) => session.mayEnd())
  }
}

export class UdpListener extends Listener {
  readonly shared: UdpShared
  readonly #sessions = new Map<number | string, UdpSession>()
  /** Sessions whose backend was removed: they only wait for answers. */
  readonly #leaving = new Set<UdpSession>()
  /** Backends of earlier sessions. */
  readonly #flows = new AffinityTable(FLOW_MEMORY_MS, MIN_FLOWS)

  constructor(context: ThreadContext, options: ListenerOptions, shared: UdpShared) {
    super(context, options)
    this.shared = shared
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
  protected serveLast(): void {
    this.onEvents()
    for (const session of [...this.#sessions.values(), ...this.#leaving]) session.end()
  }

  /** Removes a session that is over. Its client gets the same backend again, unless that has failed. */
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
        this.context.backendCounters.add(session.backend.serial, SENT_PACKETS, 1)
        this.context.backendCounters.add(session.backend.serial, SENT_BYTES, length)
        return
      }
    }
    counters[UNSERVED]!++
  }

  /** 'failed': the backend cannot be reached; 'nowhere': there is none, or no room for another client. */
  #open(key: number | string): UdpSession | 'failed' | 'nowhere' {
    const { shared, options, context } = this
    const { nowMs } = context.loop
    const client = hostKey(shared.address)
    const backend = this.#backendOf(key, nowMs) ?? options.balancer.pick(client, nowMs, shared.address)
    if (backend === undefined || !this.#hasRoom()) return 'nowhere'
    const address = shared.address.slice(0, shared.addressLength[0])
    const socket = connectToBackend(context, options, { protocol: 'UDP', backend: backend.address, client: address })
    if (socket === 'failed') {
      options.counters[FAILURES]!++
      options.balancer.failed(backend, client, nowMs)
      this.#flows.forget(key)
      return 'failed'
    }
    if (typeof socket === 'string') return 'nowhere'
    const session = new UdpSession(this, { key, socket, backend, address })
    if (!watchOrWarn(context, socket.fd, READABLE, session)) {
      closeBackendSocket(context, socket)
      return 'nowhere'
    }
    session.begin()
    this.#sessions.set(key, session)
    options.balancer.remember(backend, client, nowMs)
    context.backendCounters.add(backend.serial, BEGUN, 1)
    return session
  }

  /** The client's earlier backend, if it still serves. */
  #backendOf(key: number | string, nowMs: number): PoolBackend | undefined {
    const id = this.#flows.find(key, nowMs)
    return id === undefined ? undefined : this.options.balancer.find(id)
  }

  /** Whether sessions may go on waiting for answers. Backends that never answer must not use up the room. */
  get hasMuchRoom(): boolean {
    const { limits, clients } = this.shared
    return this.#clients < limits.perListener / 4 && clients < limits.perThread / 4
  }

  get #clients(): number {
    return this.#sessions.size + this.#leaving.size
  }

  #hasRoom(): boolean {
    const { limits, clients } = this.shared
    if (this.#clients < limits.perListener && clients < limits.perThread) return true
    const [what, most] =
      clients < limits.perThread ? ['one service port', limits.perListener] : ['a thread', limits.perThread]
    this.context.warn(`Cannot serve more UDP clients of ${what} at once than ${most}: datagrams of others are dropped`)
    return false
  }
}

interface SessionOptions {
  readonly key: number | string
  readonly socket: BackendSocket
  readonly backend: PoolBackend
  /** The client's. */
  readonly address: Uint8Array
}

/** One client and its backend. */
class UdpSession implements EventHandler {
  readonly key: number | string
  readonly backend: PoolBackend
  readonly #listener: UdpListener
  readonly #socket: BackendSocket
  readonly #address: Uint8Array
  readonly #openedMs: number
  #usedMs: number
  /** The backend has not answered the last datagram. */
  #isAwaiting = false
  #hasLeft = false
  #hasAnswered = false
  #hasFailed = false
  #isOver = false

  constructor(listener: UdpListener, { key, socket, backend, address }: SessionOptions) {
    this.key = key
    this.#listener = listener
    this.#socket = socket
    this.backend = backend
    this.#address = address
    this.#openedMs = this.#usedMs = listener.context.loop.nowMs
  }

  begin(): void {
    const { shared, options } = this.#listener
    options.counters[CONNECTIONS]!++
    options.counters[ACTIVE]!++
    shared.clients++
    shared.idle.start(this, this.#usedMs)
  }

  /** Sends the buffer to the backend; false when the backend is known not to listen. */
  send(length: number): boolean {
    const { shared, context } = this.#listener
    this.#usedMs = context.loop.nowMs
    this.#isAwaiting = true
    if (shared.send(this.#socket.fd, shared.buffer, length, MSG_NOSIGNAL) !== -1) return true
    if (LOSSES.has(lastErrno())) return true
    this.#fail()
    return false
  }

  /** Answers of the backend. */
  onEvents(): void {
    const { shared, options, context } = this.#listener
    const { buffer } = shared
    for (let i = 0; i < BATCH && !this.#isOver; i++) {
      const length = shared.recv(this.#socket.fd, buffer, LARGEST_DATAGRAM, 0)
      if (length === -1) {
        if (!LOSSES.has(lastErrno())) this.#fail()
        return
      }
      // A removed backend that goes on sending does not keep the session.
      if (!this.#hasLeft) this.#usedMs = context.loop.nowMs
      this.#isAwaiting = false
      if (!this.#hasAnswered) options.balancer.worked(this.backend)
      this.#hasAnswered = true
      const sent = shared.sendto(options.fd, buffer, length, MSG_NOSIGNAL, this.#address, this.#address.length)
      if (sent === -1) continue
      options.counters[TO_CLIENTS]! += length
      context.backendCounters.add(this.backend.serial, RECEIVED_PACKETS, 1)
      context.backendCounters.add(this.backend.serial, RECEIVED_BYTES, length)
    }
  }

  /** Its backend was removed: late answers are passed on, and the client's next datagram goes to another backend. */
  leave(): void {
    this.#hasLeft = true
  }

  /** Ends, unless a datagram came meanwhile or an answer may still come. */
  mayEnd(): void {
    const { shared, context } = this.#listener
    const { idle, awaiting } = shared
    const silentMs = context.loop.nowMs - this.#usedMs
    if (silentMs < idle.durationMs) idle.start(this, this.#usedMs)
    else if (this.#isAwaiting && silentMs < awaiting.durationMs && this.#listener.hasMuchRoom) {
      awaiting.start(this, this.#usedMs)
    } else this.end()
  }

  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    const { shared, options, context } = this.#listener
    options.counters[ACTIVE]!--
    shared.clients--
    shared.idle.stop(this)
    shared.awaiting.stop(this)
    closeBackendSocket(context, this.#socket)
    this.#listener.forget(this, { hasFailed: this.#hasFailed, usedMs: this.#usedMs })
  }

  /** ICMP reported that datagrams do not arrive. */
  #fail(): void {
    this.#hasFailed = true
    const { options, context } = this.#listener
    options.counters[FAILURES]!++
    // A client that has left its backend has affinity to another by now.
    if (!this.#hasLeft)
      options.balancer.failed(this.backend, hostKey(this.#address), context.loop.nowMs, this.#openedMs)
    this.end()
  }
}
