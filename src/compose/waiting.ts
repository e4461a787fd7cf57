// Answers that wait until they have content.

import { argument, QuestionError } from '../serve/control/questions.ts'
import type { Clock } from '../lib/clock.ts'

/** How long an answer waits; the argument `wait` may ask for less. */
export const LONGEST_WAIT_MS = 10_000

export class Waiting {
  readonly #clock: Pick<Clock, 'setTimeout'>
  readonly #waiting = new Set<() => void>()

  constructor(clock: Pick<Clock, 'setTimeout'>) {
    this.#clock = clock
  }

  /** Resolves when there is something to send, the time is over, or the client has left. */
  next(waitMs: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        this.#waiting.delete(done)
        timer.cancel()
        signal.removeEventListener('abort', done)
        resolve()
      }
      const timer = this.#clock.setTimeout(done, waitMs)
      this.#waiting.add(done)
      signal.addEventListener('abort', done)
    })
  }

  wakeAll(): void {
    for (const wake of this.#waiting) wake()
  }
}

/** An argument that is a number; undefined when it is absent. */
export function numberOf(query: URLSearchParams, name: string): number | undefined {
  const text = argument(query, name)
  if (text === undefined) return undefined
  if (!/^\d{1,15}$/.test(text)) {
    throw new QuestionError(`Cannot use ${name}=${JSON.stringify(text)}: must be a number from 0`)
  }
  return Number(text)
}
