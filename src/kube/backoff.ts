// Waiting times between attempts that fail: doubled each time, up to a limit, and spread by chance so that the nodes of a
// cluster do not come back to a restarted API server all at once.

export interface BackoffOptions {
  readonly initialMs: number
  readonly maxMs: number
  /** In [0, 1). */
  readonly random: () => number
}

/** A server that asks for more is broken, or hostile: rules without an update for a day are worse than one request too many. */
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
