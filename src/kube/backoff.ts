// Waiting times between failed attempts. They double up to a limit, and are random, so that the nodes of a cluster do not all
// return to a restarted API server at once.

export interface BackoffOptions {
  readonly initialMs: number
  readonly maxMs: number
  /** In [0, 1). */
  readonly random: () => number
}

/** The longest wait that a server may ask for: a broken or hostile one could otherwise stop updates for a day. */
const MOST_ASKED_MS = 5 * 60_000

export class Backoff {
  readonly #options: BackoffOptions
  #nextMs: number

  constructor(options: BackoffOptions) {
    this.#options = options
    this.#nextMs = options.initialMs
  }

  /** How long to wait now: between half and one and a half of the step, and not less than the server asked for. */
  next(atLeastMs: number = 0): number {
    const { maxMs, random } = this.#options
    const stepMs = this.#nextMs
    this.#nextMs = Math.min(stepMs * 2, maxMs)
    const spread = 0.5 + random()
    return Math.max(stepMs * spread, Math.min(atLeastMs, MOST_ASKED_MS) * (1 + spread / 4))
  }

  reset(): void {
    this.#nextMs = this.#options.initialMs
  }
}
