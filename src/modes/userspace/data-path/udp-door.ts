// UDP: each client has a socket of its own to its backend, until both are silent for a while.

import { boundCall, lastErrno } from '../../../system/libc.ts'
import type { Family } from '../../../lib/ip.ts'
import type { Balancer, PoolBackend } from './balancer.ts'
import { ACTIVE, CONNECTIONS, FAILURES, RETRIES, TO_BACKENDS, TO_CLIENTS, UNSERVED } from './pool-board.ts'
import { READABLE, type Reactor, type Watched } from './reactor.ts'
import type { SeenAs } from '../plan/entrance.ts'
import { type ClientSources, isDisguised } from './client-sources.ts'
import { ADDRESS_LENGTH, clientKey, hostKey } from '../../../system/socket-address.ts'
import type { SpareSockets } from './spare-sockets.ts'
import type { TimerQueue } from './timer-queue.ts'

const LARGEST_DATAGRAM = 65_535
/** How many datagrams one socket may pass before others get their turn. */
const BATCH = 64
const MSG_NOSIGNAL = 0x4000
/** Backends that are tried for one datagram. */
const TRIES = 4

export interface UdpSharedOptions {
  /** How long a client is remembered that is silent. */
  readonly idleMs: number
  readonly sources: ClientSources
  readonly spares: SpareSockets
  readonly warn: (message: string) => void
}

/** What all UDP doors of a thread use together. */
export class UdpShared {
  readonly reactor: Reactor
  readonly sources: ClientSources
  readonly spares: SpareSockets
  readonly warn: (message: string) => void
  readonly idle: TimerQueue<UdpSession>
  readonly buffer: Uint8Array = new Uint8Array(LARGEST_DATAGRAM)
  readonly address: Uint8Array = new Uint8Array(ADDRESS_LENGTH)
  readonly addressLength: Uint32Array = new Uint32Array(1)
  readonly recvfrom: ReturnType<typeof boundCall<'recvfrom'>> = boundCall('recvfrom')
  readonly recv: ReturnType<typeof boundCall<'recv'>> = boundCall('recv')
  readonly send: ReturnType<typeof boundCall<'send'>> = boundCall('send')
  readonly sendto: ReturnType<typeof boundCall<'sendto'>> = boundCall('sendto')
  readonly connect: ReturnType<typeof boundCall<'connect'>> = boundCall('connect')

  constructor(reactor: Reactor, { idleMs, sources, spares, warn }: UdpSharedOptions) {
    this.reactor = reactor
    this.sources = sources
    this.spares = spares
    this.warn = warn
    this.idle = reactor.timers(idleMs, (session) => session.mayEnd())
  }
}

export interface UdpDoorOptions {
  readonly fd: number
  /** Whether this thread is the one that serves the door. */
  readonly isKeeper: boolean
  readonly family: Family
  readonly balancer: Balancer
  readonly counters: Float64Array
  /** Whose address backends see. */
  readonly seenAs: SeenAs
  /** Where flows begin whose source is then replaced. */
  readonly node: Uint8Array
}

export class UdpDoor implements Watched {
  readonly options: UdpDoorOptions
  readonly shared: UdpShared
  readonly #sessions = new Map<number | string, UdpSession>()

  constructor(shared: UdpShared, options: UdpDoorOptions) {
    this.shared = shared
    this.options = options
    if (options.isKeeper) shared.reactor.watch(options.fd, READABLE, this)
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

  /** Backends were removed: datagrams of those who came to them go elsewhere from now on, as in the other modes. */
  leaveRemoved(): void {
    for (const session of this.#sessions.values()) if (!this.options.balancer.has(session.backend)) session.end()
  }

  /** Clients of this listener can no longer be answered. */
  close(): void {
    if (!this.options.isKeeper) return
    this.onEvents()
    for (const session of this.#sessions.values()) session.end()
    this.shared.reactor.close(this.options.fd)
  }

  forget(session: UdpSession): void {
    if (this.#sessions.get(session.key) === session) this.#sessions.delete(session.key)
  }

  #passOn(length: number): void {
    const { counters } = this.options
    const key = clientKey(this.shared.address)
    for (let tries = 0; tries < TRIES; tries++) {
      const session = this.#sessions.get(key) ?? this.#open(key)
      if (session === undefined) break
      if (tries > 0) counters[RETRIES]!++
      if (session.send(length)) {
        counters[TO_BACKENDS]! += length
        return
      }
    }
    counters[UNSERVED]!++
  }

  #open(key: number | string): UdpSession | undefined {
    const { shared, options } = this
    const client = hostKey(shared.address)
    const backend = options.balancer.pick(client, shared.reactor.nowMs)
    if (backend === undefined) return undefined
    const fd = shared.spares.take(options.family, 'UDP')
    if (fd === -1) {
      shared.warn(`Cannot open a socket for a client: ${shared.spares.errno}`)
      return undefined
    }
    const session = new UdpSession(this, {
      key,
      fd,
      backend,
      address: shared.address.slice(0, shared.addressLength[0]),
    })
    this.#sessions.set(key, session)
    options.balancer.remember(backend, client, shared.reactor.nowMs)
    return session
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
class UdpSession implements Watched {
  readonly key: number | string
  readonly backend: PoolBackend
  readonly #door: UdpDoor
  readonly #fd: number
  readonly #address: Uint8Array
  readonly #openedMs: number
  #usedMs: number
  #sourcePort = 0
  #hasAnswered = false
  #isOver = false

  constructor(door: UdpDoor, { key, fd, backend, address }: SessionOptions) {
    const { shared, options } = door
    this.key = key
    this.#door = door
    this.#fd = fd
    this.backend = backend
    this.#address = address
    this.#openedMs = this.#usedMs = shared.reactor.nowMs
    options.counters[CONNECTIONS]!++
    options.counters[ACTIVE]!++
    const { family, node, seenAs } = options
    const disguise = { family, protocol: 'UDP', node, backend: backend.address, client: address } as const
    if (isDisguised(seenAs, disguise)) this.#sourcePort = shared.sources.disguise(fd, disguise)
    shared.connect(fd, backend.address, backend.address.length)
    shared.reactor.watch(fd, READABLE, this)
    shared.idle.start(this, this.#usedMs)
  }

  /** Sends what is in the buffer to the backend; false when that is known not to listen. */
  send(length: number): boolean {
    const { shared } = this.#door
    this.#usedMs = shared.reactor.nowMs
    if (shared.send(this.#fd, shared.buffer, length, MSG_NOSIGNAL) !== -1) return true
    if (isLoss(lastErrno())) return true
    this.#fail()
    return false
  }

  /** Answers of the backend. */
  onEvents(): void {
    const { shared, options } = this.#door
    const { buffer } = shared
    for (let i = 0; i < BATCH && !this.#isOver; i++) {
      const length = shared.recv(this.#fd, buffer, LARGEST_DATAGRAM, 0)
      if (length === -1) {
        if (lastErrno() !== 'EAGAIN') this.#fail()
        return
      }
      this.#usedMs = shared.reactor.nowMs
      if (!this.#hasAnswered) options.balancer.worked(this.backend)
      this.#hasAnswered = true
      const sent = shared.sendto(options.fd, buffer, length, MSG_NOSIGNAL, this.#address, this.#address.length)
      if (sent !== -1) options.counters[TO_CLIENTS]! += length
    }
  }

  /** The time is over, unless something came meanwhile. */
  mayEnd(): void {
    const { idle, reactor } = this.#door.shared
    const leftMs = this.#usedMs + idle.durationMs - reactor.nowMs
    if (leftMs > 0) idle.start(this, this.#usedMs)
    else this.end()
  }

  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    const { shared, options } = this.#door
    options.counters[ACTIVE]!--
    shared.idle.stop(this)
    shared.reactor.close(this.#fd)
    shared.sources.release(this.#sourcePort)
    this.#door.forget(this)
  }

  /** The backend's host has said that nobody listens there. */
  #fail(): void {
    const { shared, options } = this.#door
    options.counters[FAILURES]!++
    options.balancer.failed(this.backend, hostKey(this.#address), shared.reactor.nowMs, this.#openedMs)
    this.end()
  }
}

/** What happens to datagrams all the time, and is nobody's fault. */
function isLoss(errno: string): boolean {
  return errno === 'EAGAIN' || errno === 'ENOBUFS' || errno === 'EMSGSIZE'
}
