// Listeners for which this process has no file descriptor. There may be thousands at once, for one reason, so they are reported
// together: a moment after it began, when there are twice as many, and when it is over.

import type { Clock, Timer } from '../../lib/clock.ts'

export interface MissingNow {
  readonly listeners: number
  /** The service port of the first of them. */
  readonly first: string | undefined
}

export interface MissingListenersOptions {
  readonly clock: Clock
  readonly onMissing: (missing: MissingNow & { readonly first: string }) => void
  readonly onOver: () => void
}

/** Services come one after the other: when the first has no listener, the others are still to come. */
const WAIT_MS = 1000

export class MissingListeners {
  readonly #options: MissingListenersOptions
  #now: MissingNow = { listeners: 0, first: undefined }
  #reported = 0
  #timer: Timer | undefined

  constructor(options: MissingListenersOptions) {
    this.#options = options
  }

  get count(): number {
    return this.#now.listeners
  }

  /** After each sync. */
  note(now: MissingNow): void {
    this.#now = now
    if (now.listeners === 0) this.#end()
    else if (this.#timer === undefined && (this.#reported === 0 || now.listeners >= 2 * this.#reported))
      this.#reportSoon()
  }

  stop(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #end(): void {
    this.stop()
    if (this.#reported > 0) this.#options.onOver()
    this.#reported = 0
  }

  #reportSoon(): void {
    this.#timer = this.#options.clock.setTimeout(() => {
      this.#timer = undefined
      const { listeners, first = '' } = this.#now
      this.#reported = listeners
      this.#options.onMissing({ listeners, first })
    }, WAIT_MS)
  }
}
