// How the threads share work: how busy each of them is, and a message queue to each.
//
// One thread accepts all TCP clients. While it has time it serves them itself, because a thread that handles many events at
// once needs less time for each; when it is busy it hands new clients to others. Bulk streams are always spread over all
// threads.

import { boundCall } from '../system/libc.ts'
import { MessageQueue } from './message-queue.ts'

export interface WorkersMemory {
  /** Two words for each thread: how busy it is, and how many bulk streams it has. */
  readonly board: SharedArrayBuffer
  readonly queues: readonly SharedArrayBuffer[]
  /** An eventfd for each thread. */
  readonly wakeFds: readonly number[]
}

const WORDS_PER_THREAD = 2
const CLOCK_THREAD_CPUTIME_ID = 3
/** A thread that has work measures its load this often. */
const WINDOW_MS = 20
/** In thousandths. A thread that is busier than this sends new clients to others that are less so. */
const BUSY = 700
const ONE = new BigUint64Array([1n])

export class Workers {
  readonly index: number
  readonly #board: Int32Array
  readonly #queues: readonly MessageQueue[]
  readonly #wakeFds: readonly number[]
  readonly #write = boundCall('write')
  readonly #clockGettime = boundCall('clock_gettime')
  readonly #time = new BigUint64Array(2)
  #windowStartMs = 0
  #windowCpuMs = 0
  #nextHelper = 0

  constructor(index: number, { board, queues, wakeFds }: WorkersMemory) {
    this.index = index
    this.#board = new Int32Array(board)
    this.#queues = queues.map((memory) => new MessageQueue(memory))
    this.#wakeFds = wakeFds
  }

  static createMemory(wakeFds: readonly number[]): WorkersMemory {
    return {
      board: new SharedArrayBuffer(wakeFds.length * WORDS_PER_THREAD * Int32Array.BYTES_PER_ELEMENT),
      queues: wakeFds.map(() => MessageQueue.createMemory()),
      wakeFds,
    }
  }

  get size(): number {
    return this.#wakeFds.length
  }

  /** Publishes the load of this thread: the part of the time that it ran on a processor. */
  updateLoad(nowMs: number): void {
    const windowMs = nowMs - this.#windowStartMs
    if (windowMs < WINDOW_MS) return
    const cpuMs = this.#cpuMs()
    Atomics.store(this.#board, busyAt(this.index), Math.round((1000 * (cpuMs - this.#windowCpuMs)) / windowMs))
    this.#windowStartMs = nowMs
    this.#windowCpuMs = cpuMs
  }

  /** The thread that is to serve a new client; undefined: this one. */
  helper(): number | undefined {
    if (this.size === 1) return undefined
    const own = Atomics.load(this.#board, busyAt(this.index))
    if (own < BUSY) return undefined
    for (let i = 0; i < this.size; i++) {
      const thread = this.#nextHelper
      this.#nextHelper = (thread + 1) % this.size
      if (thread === this.index) return undefined
      if (Atomics.load(this.#board, busyAt(thread)) < own) return thread
    }
    return undefined
  }

  /** The thread that is to carry a stream that this one has found to be a large one; undefined: this one. */
  threadForBulk(): number | undefined {
    let best = this.index
    let fewest = Atomics.load(this.#board, bulkAt(best)) - 1
    for (let thread = 0; thread < this.size; thread++) {
      const count = Atomics.load(this.#board, bulkAt(thread))
      if (count < fewest) [best, fewest] = [thread, count]
    }
    return best === this.index ? undefined : best
  }

  /** Counts the bulk streams of a thread. */
  countBulk(thread: number, delta: 1 | -1): void {
    Atomics.add(this.#board, bulkAt(thread), delta)
  }

  /** Sends a message to a thread; false when its queue is full. */
  send(thread: number, record: readonly number[]): boolean {
    if (!this.#queues[thread]!.send(record)) return false
    this.#write(this.#wakeFds[thread]!, ONE, 8)
    return true
  }

  /** The next message to this thread. */
  receive(): Int32Array | undefined {
    return this.#queues[this.index]!.receive()
  }

  #cpuMs(): number {
    this.#clockGettime(CLOCK_THREAD_CPUTIME_ID, this.#time)
    return Number(this.#time[0]) * 1000 + Number(this.#time[1]) / 1e6
  }
}

/** How many bulk streams all threads have, those on the way to one included. */
export function bulkStreams({ board, wakeFds }: WorkersMemory): number {
  const words = new Int32Array(board)
  return wakeFds.reduce((sum, _, thread) => sum + Atomics.load(words, bulkAt(thread)), 0)
}

function busyAt(thread: number): number {
  return thread * WORDS_PER_THREAD
}

function bulkAt(thread: number): number {
  return thread * WORDS_PER_THREAD + 1
}
