// Doors for which this process has no file descriptor. There may be thousands at once, for one reason, so they are told together:
// a moment after it began, when there are twice as many, and when it is over.

import type { Clock, Timer } from '../../lib/clock.ts'

export interface Closed {
  readonly doors: number
  /** The service port of the first of them. */
  readonly first: string | undefined
}

export interface ClosedDoorsOptions {
  readonly clock: Clock
  readonly onClosed: (closed: Closed & { readonly first: string }) => void
  readonly onOver: () => void
}

/** Services come one after the other: when the first has no door, the others are still to come. */
const WAIT_MS = 1000

export class ClosedDoors {
  readonly #options: ClosedDoorsOptions
  #now: Closed = { doors: 0, first: undefined }
  #told = 0
  #timer: Timer | undefined

  constructor(options: ClosedDoorsOptions) {
    this.#options = options
  }

  /** How many there are. */
  get doors(): number {
    return this.#now.doors
  }

  /** After each sync. */
  note(now: Closed): void {
    this.#now = now
    if (now.doors === 0) this.#end()
    else if (this.#timer === undefined && (this.#told === 0 || now.doors >= 2 * this.#told)) this.#tellSoon()
  }

  stop(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #end(): void {
    this.stop()
    if (this.#told > 0) this.#options.onOver()
    this.#told = 0
  }

  #tellSoon(): void {
    this.#timer = this.#options.clock.setTimeout(() => {
      this.#timer = undefined
      const { doors, first = '' } = this.#now
      this.#told = doors
      this.#options.onClosed({ doors, first })
    }, WAIT_MS)
  }
}
