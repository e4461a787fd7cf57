// One of the two connections of a relay, and the stream that comes in there.
//
// Small amounts are read and written; a stream that fills the buffer is bulk and goes through a pipe instead, so that its
// data never enters this process. Nothing is read that cannot be passed on: the sender feels the receiver's pace.

import { lastErrno } from '../system/libc.ts'
import { type Pipe, PIPE_SIZE } from './pipe-pool.ts'
import type { TO_BACKENDS, TO_CLIENTS } from './pool-board.ts'
import {
  FAILED,
  HUNG_UP,
  PEER_CLOSED,
  READABLE,
  type Resumable,
  URGENT,
  type EventHandler,
  WRITABLE,
} from './event-loop.ts'
import type { Relay } from './relay.ts'

export const BUFFER_SIZE: number = 64 * 1024
const MSG_NOSIGNAL = 0x4000
const MSG_MORE = 0x8000
const SHUT_WR = 1
const SPLICE_F_MOVE = 1
const SPLICE_F_NONBLOCK = 2

/** So many steps of a stream, then others get their turn. */
const ROUNDS = 16
const SOMETHING_TO_READ = READABLE | URGENT | PEER_CLOSED | HUNG_UP | FAILED
/** After these a short read does not mean that the socket is empty. */
const MORE_THAN_DATA = URGENT | PEER_CLOSED | HUNG_UP | FAILED

export class RelayEnd implements EventHandler, Resumable {
  readonly fd: number
  readonly #relay: Relay
  readonly #counter: typeof TO_BACKENDS | typeof TO_CLIENTS
  peer!: RelayEnd
  /** May have something to read. */
  #isReadable = false
  #isUnusual = false
  /** The data in the socket is the last before the end. */
  #endIsNear = false
  /** Sends no more. */
  #isAtEnd = false
  /** The end was passed on to the peer. */
  #endIsPassedOn = false
  /** Cannot be written to any more. What it sent before is still passed on. */
  #isBroken = false
  #isBulk = false
  /** Has sent something urgent, at which splice() would stop for good. */
  #isUrgent = false
  #isQueued = false
  /** Read and not yet written: in a pipe, or, if little, in `rest`. */
  #pipe: Pipe | undefined
  #inPipe = 0
  #rest: Uint8Array | undefined

  constructor(relay: Relay, fd: number, counter: typeof TO_BACKENDS | typeof TO_CLIENTS) {
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
      this.#passOn()
    }
    if ((events & WRITABLE) !== 0 && !this.#relay.isOver && this.peer.#isWaiting()) this.peer.#passOn()
  }

  resume(): void {
    this.#isQueued = false
    this.#passOn()
  }

  /** Passes on data until there is none or its share of the turn is over. */
  #passOn(): void {
    if (this.#isQueued) return
    for (let round = 0; round < ROUNDS; round++) if (!this.#pass()) return
    this.#isQueued = true
    this.#relay.relays.context.loop.again(this)
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
    // Less than the buffer takes: the socket is empty, and an event follows when more comes.
    else if (!this.#isUnusual) this.#isReadable = false
    else if (this.#endIsNear && !this.#isBroken) this.#isAtEnd = true
    // The end follows in a moment: it can go in the same packet.
    const written = send(this.peer.fd, buffer, length, this.#isAtEnd ? MSG_NOSIGNAL | MSG_MORE : MSG_NOSIGNAL)
    if (written === length) {
      this.#relay.count(this.#counter, length)
      return this.#isReadable
    }
    if (written === -1 && lastErrno() !== 'EAGAIN') return this.#peerBroke()
    const passed = Math.max(0, written)
    this.#relay.count(this.#counter, passed)
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
    // 0 is the end or urgent data: the next recv() tells which.
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
    this.#relay.count(this.#counter, written)
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
    this.#relay.count(this.#counter, written)
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

  /** Data for the peer is lost, but what it sent before is still passed on. */
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
    peer.#passOn()
    return false
  }
}
