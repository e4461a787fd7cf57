// The event loop of a data-path thread, directly on epoll.
//
// Node's own sockets cost a handful of objects and callbacks for each event. Here an event is a number and one method call,
// and a connection is a few fields. Everything is synchronous: a turn waits, calls the handlers, and returns.

import { boundCall, lastErrno, mustCall } from '../system/libc.ts'
import { KernelError } from '../lib/errors.ts'
import { monotonicMs } from './monotonic.ts'
import { TimerQueue } from './timer-queue.ts'

// EPOLL* of <sys/epoll.h>.
export const READABLE = 0x001
export const URGENT = 0x002
export const WRITABLE = 0x004
export const FAILED = 0x008
export const HUNG_UP = 0x010
export const PEER_CLOSED = 0x2000
export const EDGE = 0x80000000
/** All that a stream can report, each change once. */
export const STREAM_EVENTS: number = READABLE | URGENT | WRITABLE | PEER_CLOSED | EDGE

const EPOLL_CLOEXEC = 0o2000000
const EPOLL_CTL_ADD = 1
const EPOLL_CTL_DEL = 2
const EPOLL_CTL_MOD = 3
const MAX_EVENTS = 256

// struct epoll_event is packed on x86 and only there.
const IS_PACKED = process.arch === 'x64' || process.arch === 'ia32'
const EVENT_WORDS = IS_PACKED ? 3 : 4
const FD_WORD = IS_PACKED ? 1 : 2

/** Receives the events of a file descriptor. */
export interface EventHandler {
  onEvents(events: number): void
}

/** Work that stopped so that others get their turn. */
export interface Resumable {
  resume(): void
}

export class EventLoop {
  /** Called at the beginning of each turn. */
  onTurn: (nowMs: number) => void = () => {}
  /** The time at which the current turn began. */
  nowMs: number = monotonicMs()
  readonly #epollWait = boundCall('epoll_wait')
  readonly #epollCtl = boundCall('epoll_ctl')
  readonly #close = boundCall('close')
  readonly #epoll: number
  readonly #event = new Int32Array(EVENT_WORDS)
  readonly #events = new Int32Array(EVENT_WORDS * MAX_EVENTS)
  readonly #watched: (EventHandler | undefined)[] = []
  /** The turn in which each file descriptor was added. */
  readonly #since: number[] = []
  #turns = 0
  /** Closed at the end of the turn: before, the kernel could reuse a number while events of the old socket are still to come. */
  readonly #closing: number[] = []
  /** Called when those are closed. */
  readonly #afterClosing: (() => void)[] = []
  #resumable: Resumable[] = []
  readonly #timers: Pick<TimerQueue<unknown>, 'earliestMs' | 'expire'>[] = []

  constructor() {
    this.#epoll = mustCall('create an epoll instance', 'epoll_create1', EPOLL_CLOEXEC)
  }

  /**
   * False when the kernel has no room for another (fs.epoll.max_user_watches, or its memory): that must cost one client
   * and not this thread. lastErrno() has the reason.
   */
  watch(fd: number, events: number, watched: EventHandler): boolean {
    if (!this.#control(EPOLL_CTL_ADD, fd, events)) return false
    this.#watched[fd] = watched
    this.#since[fd] = this.#turns
    return true
  }

  /** Gives a watched file descriptor another handler. */
  setHandler(fd: number, watched: EventHandler): void {
    this.#watched[fd] = watched
  }

  /** Watches for other events. */
  change(fd: number, events: number): void {
    this.#control(EPOLL_CTL_MOD, fd, events)
  }

  /** Stops watching a file descriptor, and leaves it open. */
  unwatch(fd: number): void {
    this.#watched[fd] = undefined
    this.#control(EPOLL_CTL_DEL, fd, 0)
  }

  /** Closes a file descriptor at the end of the turn. Its handler gets no more events. */
  close(fd: number, afterwards?: () => void): void {
    this.#watched[fd] = undefined
    this.#closing.push(fd)
    if (afterwards !== undefined) this.#afterClosing.push(afterwards)
  }

  /** Resumes something in the next turn, which does not wait. */
  again(resumable: Resumable): void {
    this.#resumable.push(resumable)
  }

  timers<T>(durationMs: number, onExpired: (item: T) => void): TimerQueue<T> {
    const queue = new TimerQueue(durationMs, onExpired)
    this.#timers.push(queue)
    return queue
  }

  /** Waits for events, at most for so long, and calls their handlers. */
  turn(maxWaitMs: number): void {
    const count = this.#epollWait(this.#epoll, this.#events, MAX_EVENTS, this.#waitMs(maxWaitMs))
    this.nowMs = monotonicMs()
    this.onTurn(this.nowMs)
    if (count === -1 && lastErrno() !== 'EINTR') throw new KernelError('wait for events', lastErrno())
    this.#turns++
    for (let at = 0; at < count * EVENT_WORDS; at += EVENT_WORDS) {
      const fd = this.#events[at + FD_WORD]!
      // A file descriptor that was added in this turn has a new socket: the event belongs to the old one, which another thread
      // took over and closed. Events of the new one come in the next turn.
      if (this.#since[fd] !== this.#turns) this.#watched[fd]?.onEvents(this.#events[at]!)
    }
    this.#resume()
    for (const queue of this.#timers) queue.expire(this.nowMs)
    this.#closeAll()
  }

  /** Closes everything that is watched, and itself. */
  dispose(): void {
    for (const fd of this.#watched.keys()) if (this.#watched[fd] !== undefined) this.#close(fd)
    this.#watched.length = 0
    this.#closeAll()
    this.#close(this.#epoll)
  }

  #closeAll(): void {
    for (const fd of this.#closing) this.#close(fd)
    this.#closing.length = 0
    for (const afterwards of this.#afterClosing.splice(0)) afterwards()
  }

  #resume(): void {
    if (this.#resumable.length === 0) return
    const due = this.#resumable
    this.#resumable = []
    for (const each of due) each.resume()
  }

  #waitMs(maxWaitMs: number): number {
    if (this.#resumable.length > 0) return 0
    let untilMs = Infinity
    for (const { earliestMs } of this.#timers) if (earliestMs < untilMs) untilMs = earliestMs
    if (untilMs === Infinity) return maxWaitMs
    return Math.min(maxWaitMs, Math.max(0, Math.ceil(untilMs - this.nowMs)))
  }

  #control(op: number, fd: number, events: number): boolean {
    this.#event[0] = events
    this.#event[FD_WORD] = fd
    if (this.#epollCtl(this.#epoll, op, fd, this.#event) === 0) return true
    const errno = lastErrno()
    if (errno === 'ENOSPC' || errno === 'ENOMEM') return false
    throw new KernelError(`watch file descriptor ${fd}`, errno)
  }
}
