import type { Clock, Timer } from '../lib/clock.ts'
import type { QuestionClient } from '../serve/control/questions.ts'

/** A client that has not asked for this long has gone. */
export const LEASE_MS = 15_000

/** The clients that keep asking. */
export class Leases {
  readonly #clock: Clock
  readonly #onLastGone: () => void
  readonly #timers = new Map<AbortSignal, Timer>()

  constructor(clock: Clock, onLastGone: () => void) {
    this.#clock = clock
    this.#onLastGone = onLastGone
  }

  get size(): number {
    return this.#timers.size
  }

  renew({ signal }: QuestionClient): void {
    const before = this.#timers.get(signal)
    if (before === undefined) signal.addEventListener('abort', () => this.end({ signal }), { once: true })
    before?.cancel()
    this.#timers.set(
      signal,
      this.#clock.setTimeout(() => this.end({ signal }), LEASE_MS),
    )
  }

  end({ signal }: QuestionClient): void {
    this.#timers.get(signal)?.cancel()
    if (this.#timers.delete(signal) && this.#timers.size === 0) this.#onLastGone()
  }

  /** Ends all of them, without a call. */
  close(): void {
    for (const timer of this.#timers.values()) timer.cancel()
    this.#timers.clear()
  }
}
