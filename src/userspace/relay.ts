// A client's connection and a backend's, joined: what comes in at one end goes out at the other, until both have said
// that they are done.
//
// Small amounts are read and written; a stream that fills the buffer is bulk and goes through a pipe instead, so that its
// data never enters this process. Nothing is read that cannot be passed on: the sender feels the receiver's pace. The end
// of one direction (FIN) is passed on and the other goes on; a broken connection (RST) breaks the other end, too, but not
// before it has got what was sent to it.

import { boundCall, lastErrno } from '../kernel/libc.ts'
import type { ClientSources } from './client-sources.ts'
import { type Pipe, PIPE_SIZE, PipePool } from './pipe-pool.ts'
import { TO_BACKENDS, TO_CLIENTS, ACTIVE } from './pool-board.ts'
import {
  FAILED,
  HUNG_UP,
  PEER_CLOSED,
  READABLE,
  type Reactor,
  type Resumable,
  STREAM_EVENTS,
  URGENT,
  type Watched,
  WRITABLE,
} from './reactor.ts'
import { keepAlive, resetOnClose } from './sockets.ts'
import type { Team } from './team.ts'
import type { TimerQueue } from './timer-queue.ts'

const BUFFER_SIZE = 64 * 1024
const MSG_NOSIGNAL = 0x4000
const MSG_MORE = 0x8000
const SHUT_WR = 1
const SPLICE_F_MOVE = 1
const SPLICE_F_NONBLOCK = 2
const TIOCOUTQ = 0x5411

/** How often one stream is served before others get their turn. */
const ROUNDS = 16
/** The kind of record by which a relay is handed over: both sockets, the pool, the source port and the state. */
export const HANDED_RELAY = 2
const STATE_BITS = 8
const SOMETHING_TO_READ = READABLE | URGENT | PEER_CLOSED | HUNG_UP | FAILED
/** After these there is more to find out than how much was sent, so reading goes on until nothing is left. */
const MORE_THAN_DATA = URGENT | PEER_CLOSED | HUNG_UP | FAILED
/** What ends within this time need not be watched over. */
const YOUNG_MS = 10_000
/** A broken connection is given this long to get what was sent to it. */
const FLUSH_CHECK_MS = 20
const FLUSH_CHECKS = 250

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

/** One of the two connections, and the stream that comes in there. */
export class RelayEnd implements Watched, Resumable {
  readonly fd: number
  readonly #relay: Relay
  readonly #counter: number
  peer!: RelayEnd
  /** May have something to read. */
  #isReadable = false
  #isUnusual = false
  /** Nothing but the end comes behind what is there to read. */
  #endIsNear = false
  /** Has said that it sends no more. */
  #isAtEnd = false
  /** The peer has been told so. */
  #endIsPassedOn = false
  /** Can no longer be written to: what it sent before is still passed on. */
  #isBroken = false
  #isBulk = false
  /** Has sent something urgent, at which splice() would stop for good. */
  #isUrgent = false
  #isQueued = false
  /** What has been read and could not be written yet: in a pipe, or, if little, here. */
  #pipe: Pipe | undefined
  #inPipe = 0
  #rest: Uint8Array | undefined

  constructor(relay: Relay, fd: number, counter: number) {
    this.#relay = relay
    this.fd = fd
    this.#counter = counter
  }

  /** In bits, for another thread. Only while nothing waits to be written. */
  state(): number {
    const flags = [
      this.#isUnusual,
      this.#endIsNear,
      this.#isAtEnd,
      this.#endIsPassedOn,
      this.#isBroken,
      this.#isBulk,
      this.#isUrgent,
    ]
    return flags.reduce((bits, flag, i) => (flag ? bits | (1 << i) : bits), 0)
  }

  restore(state: number): void {
    const flag = (i: number) => (state & (1 << i)) !== 0
    this.#isUnusual = flag(0)
    this.#endIsNear = flag(1)
    this.#isAtEnd = flag(2)
    this.#endIsPassedOn = flag(3)
    this.#isBroken = flag(4)
    this.#isBulk = flag(5)
    this.#isUrgent = flag(6)
  }

  onEvents(events: number): void {
    if ((events & SOMETHING_TO_READ) !== 0) {
      if ((events & MORE_THAN_DATA) !== 0) this.#isUnusual = true
      if ((events & MORE_THAN_DATA) === PEER_CLOSED) this.#endIsNear = true
      if ((events & URGENT) !== 0) this.#isUrgent = true
      this.#isReadable = true
      this.resume()
    }
    if ((events & WRITABLE) !== 0 && !this.#relay.isOver && this.peer.#isWaiting()) this.peer.resume()
  }

  /** Passes on what there is. */
  resume(): void {
    this.#isQueued = false
    for (let round = 0; round < ROUNDS; round++) if (!this.#pass()) return
    if (this.#isQueued) return
    this.#isQueued = true
    this.#relay.relays.reactor.again(this)
  }

  release(): void {
    const { pipes } = this.#relay.relays
    if (this.#pipe !== undefined) {
      if (this.#inPipe > 0) pipes.discard(this.#pipe)
      else pipes.giveBack(this.#pipe)
    }
    this.#pipe = undefined
    this.#inPipe = 0
    this.#rest = undefined
  }

  #isWaiting(): boolean {
    return this.#inPipe > 0 || this.#rest !== undefined
  }

  /** One step; whether another makes sense. */
  #pass(): boolean {
    if (this.#relay.isOver) return false
    if (this.#inPipe > 0) return this.#writePipe()
    if (this.#rest !== undefined) return this.#writeRest(this.#rest)
    if (this.#isAtEnd) return this.#passEnd()
    if (!this.#isReadable || this.peer.#isBroken) return false
    return this.#isBulk && !this.#isUrgent ? this.#readIntoPipe() : this.#copy()
  }

  #copy(): boolean {
    const { recv, send, buffer } = this.#relay.relays
    const length = recv(this.fd, buffer, BUFFER_SIZE, 0)
    if (length <= 0) return this.#readNothing(length)
    if (length === BUFFER_SIZE) this.#isBulk = true
    // Less than asked for: nothing is left, and there will be an event when more comes.
    else if (!this.#isUnusual) this.#isReadable = false
    else if (this.#endIsNear && !this.#isBroken) this.#isAtEnd = true
    // The end follows in a moment: it can go in the same packet.
    const written = send(this.peer.fd, buffer, length, this.#isAtEnd ? MSG_NOSIGNAL | MSG_MORE : MSG_NOSIGNAL)
    if (written === length) {
      this.#relay.counters[this.#counter]! += length
      return this.#isReadable
    }
    if (written === -1 && lastErrno() !== 'EAGAIN') return this.#peerBroke()
    const passed = Math.max(0, written)
    this.#relay.counters[this.#counter]! += passed
    this.#rest = buffer.slice(passed, length)
    return false
  }

  #readIntoPipe(): boolean {
    const { splice, pipes } = this.#relay.relays
    if (!this.peer.#isWaiting() && this.#relay.moveIfBetter()) return false
    this.#pipe ??= pipes.take()
    if (this.#pipe === undefined) {
      this.#isBulk = false
      return true
    }
    const length = splice(this.fd, null, this.#pipe.writeFd, null, PIPE_SIZE, SPLICE_F_MOVE | SPLICE_F_NONBLOCK)
    if (length > 0) {
      this.#inPipe = length
      return true
    }
    // 0 is the end, or something urgent before it: reading tells which.
    if (length === 0) this.#isBulk = false
    const more = length === 0 || this.#readNothing(length)
    this.release()
    return more
  }

  #writePipe(): boolean {
    const { splice, pipes } = this.#relay.relays
    const { readFd } = this.#pipe!
    const written = splice(readFd, null, this.peer.fd, null, this.#inPipe, SPLICE_F_MOVE | SPLICE_F_NONBLOCK)
    if (written === -1) return lastErrno() === 'EAGAIN' ? false : this.#peerBroke()
    this.#relay.counters[this.#counter]! += written
    this.#inPipe -= written
    if (this.#inPipe === 0) {
      pipes.giveBack(this.#pipe!)
      this.#pipe = undefined
    }
    return true
  }

  #writeRest(rest: Uint8Array): boolean {
    const written = this.#relay.relays.send(this.peer.fd, rest, rest.length, MSG_NOSIGNAL)
    if (written === -1) return lastErrno() === 'EAGAIN' ? false : this.#peerBroke()
    this.#relay.counters[this.#counter]! += written
    this.#rest = written === rest.length ? undefined : rest.subarray(written)
    return true
  }

  /** Reading gave no data: 0 is the end of the stream, -1 an error or nothing for now. */
  #readNothing(length: number): boolean {
    if (length === -1 && lastErrno() === 'EAGAIN') {
      this.#isReadable = false
      return false
    }
    if (length === -1 || this.#isBroken) {
      this.#relay.break(this)
      return false
    }
    this.#isAtEnd = true
    return true
  }

  #passEnd(): boolean {
    if (this.#endIsPassedOn) return false
    this.#endIsPassedOn = true
    if (this.peer.#endIsPassedOn) this.#relay.finish()
    else this.#relay.relays.shutdown(this.peer.fd, SHUT_WR)
    return false
  }

  /** What was meant for the peer is lost, but it may have sent something before. */
  #peerBroke(): boolean {
    this.release()
    const { peer } = this
    peer.#isBroken = true
    if (peer.#isAtEnd) {
      this.#relay.break(peer)
      return false
    }
    peer.#isUnusual = true
    peer.#isReadable = true
    peer.resume()
    return false
  }
}

/** A connection that is to be reset once it has got all that was sent to it. */
class Flushing {
  readonly #relays: Relays
  readonly #fd: number
  readonly #queued = new Int32Array(1)
  #checks = 0

  constructor(relays: Relays, fd: number) {
    this.#relays = relays
    this.#fd = fd
    relays.reactor.handOver(fd, IGNORED)
  }

  check(): void {
    const { reactor, flushing, ioctl } = this.#relays
    const isKnown = ioctl(this.#fd, TIOCOUTQ, this.#queued) === 0
    if (isKnown && this.#queued[0]! > 0 && this.#checks++ < FLUSH_CHECKS) {
      flushing.start(this, reactor.nowMs)
      return
    }
    resetOnClose(this.#fd)
    reactor.close(this.#fd)
  }
}

const IGNORED: Watched = { onEvents: () => {} }
