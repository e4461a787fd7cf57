// Stops reading a watch while its events could only wait. Changes that keep coming are written a few times per second, and so they
// wake the proxy no more often than that: waking up, a hundred times, is what they would cost most.

import type { Socket } from 'node:net'
import type { Clock, Timer } from '../lib/clock.ts'

/** What comes within a pause is read so long before its end, and is then written with the rest. */
const AHEAD_MS = 20
/** A shorter pause saves nothing. */
const SHORTEST_MS = 50
/** A longer one is divided: the API server must not wait for us. */
const LONGEST_MS = 250
/** With more in one pause than that, there is none: the kernel holds twice as much for us. */
const MUCH_BYTES = 32 << 10

export interface PauseOptions {
  readonly clock: Clock
  /** In how many milliseconds waiting events will be written; undefined: none are waiting. */
  readonly nextWriteMs: () => number | undefined
}

export class PausedReading {
  readonly #socket: Pick<Socket, 'pause' | 'resume'>
  readonly #options: PauseOptions
  #bytes = 0
  #scheduled: Timer | undefined

  /** The socket must have a highWaterMark of 1, or it goes on reading until that is full. */
  constructor(socket: Pick<Socket, 'pause' | 'resume'>, options: PauseOptions) {
    this.#socket = socket
    this.#options = options
  }

  /** Something was read. */
  read(bytes: number): void {
    this.#bytes += bytes
    // By then its events have been delivered.
    this.#scheduled ??= this.#options.clock.setImmediate(() => this.#look())
  }

  close(): void {
    this.#scheduled?.cancel()
  }

  #look(): void {
    this.#scheduled = undefined
    const { clock, nextWriteMs } = this.#options
    const pauseMs = Math.min((nextWriteMs() ?? 0) - AHEAD_MS, LONGEST_MS)
    if (pauseMs < SHORTEST_MS) return
    if (this.#bytes <= MUCH_BYTES) this.#socket.pause()
    this.#bytes = 0
    this.#scheduled = clock.setTimeout(() => {
      this.#scheduled = undefined
      this.#socket.resume()
    }, pauseMs)
  }
}
