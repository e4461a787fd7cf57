// Work that is tried again after it failed: soon, then less and less often, until it succeeds.

import type { Clock, Timer } from './clock.ts'

export interface TryAgainOptions {
  readonly clock: Clock
  /** Called when it is time for another attempt. */
  readonly again: () => void
  /** Called after each failure. */
  readonly onFailed: (error: unknown, againInMs: number) => void
  /** Called when the work succeeds after failures. */
  readonly onMended?: () => void
  /** The pause after the first failure. It doubles with each failure in a row. */
  readonly firstMs?: number
  /** The longest pause. */
  readonly mostMs?: number
}

const FIRST_MS = 100
const MOST_MS = 30_000

/** Its owner does the work, and says what became of it. */
export class TryAgain {
  readonly #options: TryAgainOptions
  #failures = 0
  #timer: Timer | undefined
  #isClosed = false

  constructor(options: TryAgainOptions) {
    this.#options = options
  }

  /** Another attempt is due: until then nothing is to be tried. */
  get isWaiting(): boolean {
    return this.#timer !== undefined
  }

  failed(error: unknown): void {
    const { clock, again, onFailed, firstMs = FIRST_MS, mostMs = MOST_MS } = this.#options
    if (this.#isClosed) return
    const againInMs = Math.min(mostMs, firstMs * 2 ** this.#failures)
    this.#failures++
    this.#timer?.cancel()
    this.#timer = clock.setTimeout(() => {
      this.#timer = undefined
      again()
    }, againInMs)
    onFailed(error, againInMs)
  }

  succeeded(): void {
    if (this.#failures === 0) return
    this.#failures = 0
    this.#timer?.cancel()
    this.#timer = undefined
    this.#options.onMended?.()
  }

  /** From now on nothing is tried again. */
  close(): void {
    this.#isClosed = true
    this.#timer?.cancel()
    this.#timer = undefined
  }
}
