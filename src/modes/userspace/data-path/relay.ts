// A client's connection and a backend's, joined: what comes in at one end goes out at the other, until both have said
// that they are done.
//
// The end of one direction (FIN) is passed on and the other goes on; a broken connection (RST) breaks the other end, too,
// but not before it has got what was sent to it.

import { boundCall } from '../../../system/libc.ts'
import type { ClientSources } from './client-sources.ts'
import { FLUSH_CHECK_MS, Flushing } from './flushing.ts'
import { PipePool } from './pipe-pool.ts'
import { ACTIVE, TO_BACKENDS, TO_CLIENTS } from './pool-board.ts'
import { type Reactor, STREAM_EVENTS } from './reactor.ts'
import { BUFFER_SIZE, RelayEnd } from './relay-end.ts'
import { keepAlive, resetOnClose } from './sockets.ts'
import type { Team } from './team.ts'
import type { TimerQueue } from './timer-queue.ts'

/** The kind of record by which a relay is handed over: both sockets, the pool, the source port and the state. */
export const HANDED_RELAY = 2
const STATE_BITS = 8
/** What ends within this time need not be watched over. */
const YOUNG_MS = 10_000

/** What all relays of a thread use together. */
export class Relays {
  readonly reactor: Reactor
  readonly sources: ClientSources
  readonly team: Team
  readonly pipes: PipePool = new PipePool()
  readonly buffer: Uint8Array = new Uint8Array(BUFFER_SIZE)
  readonly recv: ReturnType<typeof boundCall<'recv'>> = boundCall('recv')
  readonly send: ReturnType<typeof boundCall<'send'>> = boundCall('send')
  readonly splice: ReturnType<typeof boundCall<'splice'>> = boundCall('splice')
  readonly shutdown: ReturnType<typeof boundCall<'shutdown'>> = boundCall('shutdown')
  readonly ioctl: ReturnType<typeof boundCall<'ioctl'>> = boundCall('ioctl')
  readonly flushing: TimerQueue<Flushing>
  /** Those that have not lived long yet. */
  readonly young: TimerQueue<Relay>

  constructor(reactor: Reactor, sources: ClientSources, team: Team) {
    this.reactor = reactor
    this.sources = sources
    this.team = team
    this.flushing = reactor.timers(FLUSH_CHECK_MS, (flushing) => flushing.check())
    this.young = reactor.timers(YOUNG_MS, (relay) => keepAlive(relay.backend.fd))
  }

  /** Joins two connections, of which that of the backend is watched already, and the client is counted as active. */
  join(sockets: RelaySockets): Relay {
    const relay = new Relay(this, sockets)
    this.reactor.handOver(sockets.backendFd, relay.backend)
    this.reactor.watch(sockets.clientFd, STREAM_EVENTS, relay.client)
    return relay
  }

  /** Goes on with what another thread has handed over. */
  takeOver(sockets: RelaySockets, state: number): void {
    const relay = new Relay(this, sockets)
    sockets.counters[ACTIVE]!++
    relay.restore(state)
    this.reactor.watch(sockets.backendFd, STREAM_EVENTS, relay.backend)
    this.reactor.watch(sockets.clientFd, STREAM_EVENTS, relay.client)
  }
}

export interface RelaySockets {
  readonly clientFd: number
  readonly backendFd: number
  /** By which number all threads know the pool. */
  readonly pool: number
  readonly counters: Float64Array
  /** To be released in the end, if not 0. */
  readonly sourcePort: number
}

export class Relay {
  readonly relays: Relays
  readonly client: RelayEnd
  readonly backend: RelayEnd
  readonly counters: Float64Array
  readonly #sockets: RelaySockets
  isOver = false
  /** Who carries it is decided when it turns out to carry much. */
  #carrierIsDecided = false

  constructor(relays: Relays, sockets: RelaySockets) {
    const { clientFd, backendFd, counters } = sockets
    this.relays = relays
    this.#sockets = sockets
    this.counters = counters
    this.client = new RelayEnd(this, clientFd, TO_BACKENDS)
    this.backend = new RelayEnd(this, backendFd, TO_CLIENTS)
    this.client.peer = this.backend
    this.backend.peer = this.client
    relays.young.start(this, relays.reactor.nowMs)
  }

  /** It carries much. Gives it to the thread with the least of these; true when that is another one. */
  moveIfBetter(): boolean {
    if (this.#carrierIsDecided) return false
    this.#carrierIsDecided = true
    const { team, reactor } = this.relays
    team.countBulk(team.index, 1)
    const carrier = team.carrier()
    if (carrier === undefined) return false
    const { clientFd, backendFd, pool, sourcePort } = this.#sockets
    const state = this.client.state() | (this.backend.state() << STATE_BITS)
    reactor.forget(clientFd)
    reactor.forget(backendFd)
    if (!team.send(carrier, [HANDED_RELAY, clientFd, backendFd, pool, sourcePort, state])) {
      reactor.watch(clientFd, STREAM_EVENTS, this.client)
      reactor.watch(backendFd, STREAM_EVENTS, this.backend)
      return false
    }
    // In this order: whoever asks whether anything is going on looks at the active ones first.
    team.countBulk(team.index, -1)
    team.countBulk(carrier, 1)
    this.isOver = true
    this.relays.young.stop(this)
    this.counters[ACTIVE]!--
    return true
  }

  /** As it was on another thread, which has counted it as one of ours. */
  restore(state: number): void {
    this.#carrierIsDecided = true
    this.client.restore(state)
    this.backend.restore(state >> STATE_BITS)
  }

  /** Both directions have ended. */
  finish(): void {
    if (this.isOver) return
    this.#end()
    const { reactor } = this.relays
    reactor.close(this.client.fd)
    reactor.close(this.backend.fd)
  }

  /** One end broke: the other is broken as well, once it has got what was sent to it. */
  break(broken: RelayEnd): void {
    if (this.isOver) return
    this.#end()
    resetOnClose(broken.fd)
    this.relays.reactor.close(broken.fd)
    new Flushing(this.relays, broken.peer.fd).check()
  }

  #end(): void {
    this.isOver = true
    this.relays.young.stop(this)
    this.counters[ACTIVE]!--
    if (this.#carrierIsDecided) this.relays.team.countBulk(this.relays.team.index, -1)
    this.relays.sources.release(this.#sockets.sourcePort)
    this.client.release()
    this.backend.release()
  }
}
