// Runs one piece of work neither too often nor too seldom.

import type { Clock, Timer } from '../lib/clock.ts'

/** All in milliseconds. */
export interface RunnerPeriods {
  /** At least this long between the end of a run and the start of the next; 0: at once, unless there were many of late. */
  readonly minMs: number
  /** At most this long from the end of a run to the start of the next, wanted or not. At least minMs. */
  readonly maxMs: number
  /** How long after a first failure the work is tried again. It doubles with each failure in a row. */
  readonly retryMs: number
  /** Where the doubling ends. At least retryMs. */
  readonly maxRetryMs: number
}

/** Why a run happens: it was asked for, maxMs has passed, or the last run failed. */
export type RunReason = 'requested' | 'periodic' | 'retry'

export interface RunnerOptions {
  /** For messages. */
  readonly name: string
  /** The work. Throwing, or a rejected promise, is a failure. */
  readonly run: (reason: RunReason) => void | Promise<void>
  readonly periods: RunnerPeriods
  readonly clock: Clock
  /** How many runs may follow each other without waiting for minMs after a quiet time. One when not given. */
  readonly burst?: number
  /** Told about each failure and when the work is tried again at the latest. */
  readonly onError: (error: unknown, retryInMs: number) => void
}

/** How much time runs may take without a pause, the part of the time that they get beyond, and the longest pause. */
const FREE_MS = 250
const SHARE = 0.25
const LONGEST_REST_MS = 1000

/**
 * With a minMs of 0: after a quiet time so many runs without a pause, then so many with a short one, and then one in so many
 * milliseconds. A change costs less together with others than by itself, and changes that keep coming are not waited for one by one.
 */
const EAGER_AT_ONCE = 16
const EAGER_QUICK = 32
const EAGER_QUICK_MS = 20
const EAGER_MS = 100

/** The pause before a run that is urgent, where minMs is longer, and the part of the time that these get. */
const URGENT_MS = 100
const URGENT_SHARE = 0.5

type State = 'idle' | 'waiting' | 'running' | 'stopped'

/**
 * Runs work on request, with kube-proxy's guarantees:
 * - never two runs at a time;
 * - minMs between the end of a run and the start of the next (`burst` runs may share one such pause);
 * - with a minMs of 0, no pause as long as runs are short and rare. Sixteen may follow each other at once, then there is one
 *   in 20 ms, and after a second of that one in 100 ms. And a user who may change one service may change it without end: after a quarter of a second of runs, they get a
 *   quarter of the time, and wait for at most a second;
 * - a request that is urgent waits for a tenth of a second at most, as long as runs are short and rare;
 * - a run at least every maxMs, without any request;
 * - after a failure, a run after retryMs, 2 retryMs, 4 retryMs, ... unless something else starts one earlier. Requests do
 *   that, but not within retryMs of the failure: a stream of changes must not hammer work that cannot succeed;
 * - requests made before a run starts are served by that run; one made during a run causes another.
 *
 * Runs start in a turn of their own. So all the events of one read from the API, however small minMs is, cost one run.
 */
export class BoundedRunner {
  readonly #options: RunnerOptions
  #periods: RunnerPeriods
  #state: State = 'idle'
  #requested = false
  #isUrgent = false
  #failures = 0
  /** Runs that may start without a pause, a fraction while the next one accrues: one per #pace. As of #endedMs. */
  #credit: number
  /** How much time runs took, less what was made up for since, as of #endedMs. The first run is not counted: it has to do it all. */
  #spentMs = 0
  #isFirst = true
  /** When the last run ended, or when start() was called. */
  #endedMs = 0
  #timer: Timer | undefined
  #current: Promise<void> | undefined

  constructor(options: RunnerOptions) {
    checkPeriods(options.name, options.periods)
    this.#options = options
    this.#periods = options.periods
    this.#credit = this.#burst
  }

  /** Begins to run. Requests made before are served now. */
  start(): void {
    if (this.#state !== 'idle') return
    this.#state = 'waiting'
    this.#endedMs = this.#options.clock.monotonicNow()
    this.#schedule()
  }

  /** Asks for a run. One that is urgent does not wait for minMs, and takes no more than its share of the time. */
  request(urgency?: 'urgent'): void {
    const isUrgent = urgency === 'urgent'
    if (this.#requested && (this.#isUrgent || !isUrgent)) return
    this.#requested = true
    this.#isUrgent ||= isUrgent
    if (this.#state === 'waiting') this.#schedule()
  }

  /** Changes the periods. A pause under way is measured with the new ones. */
  setPeriods(periods: RunnerPeriods): void {
    checkPeriods(this.#options.name, periods)
    this.#periods = periods
    // Credit for a burst is of no use where the new periods allow none.
    this.#credit = Math.min(this.#credit, this.#isFirst ? this.#burst : this.#burst - 1)
    if (this.#state === 'waiting') this.#schedule()
  }

  /** Starts no more runs. Resolves when the one under way, if any, has ended. */
  async stop(): Promise<void> {
    this.#state = 'stopped'
    this.#timer?.cancel()
    await this.#current
  }

  /** Arms the timer for the next run. Its moment depends on what is known now, so this is called whenever that changes. */
  #schedule(): void {
    this.#timer?.cancel()
    const { clock } = this.#options
    const waitMs = this.#startMs() - clock.monotonicNow()
    this.#timer =
      waitMs <= 0
        ? clock.setImmediate(() => this.#begin())
        : clock.setTimeout(() => this.#schedule(), Math.ceil(waitMs))
  }

  /** How many runs may follow each other without the pause for those that keep coming, and how long it takes until there may be one more. */
  get #burst(): number {
    return this.#options.burst ?? (this.#periods.minMs === 0 ? EAGER_AT_ONCE + EAGER_QUICK : 1)
  }

  get #paceMs(): number {
    return this.#periods.minMs || EAGER_MS
  }

  /** The pause before the next run, by those that there were of late. */
  get #creditPauseMs(): number {
    const isQuick = this.#periods.minMs === 0 && this.#options.burst === undefined && this.#credit < EAGER_QUICK + 1
    const paceMs = this.#isUrgent ? Math.min(URGENT_MS, this.#paceMs) : this.#paceMs
    return Math.max(Math.max(0, 1 - this.#credit) * paceMs, isQuick ? EAGER_QUICK_MS : 0)
  }

  /** When the next run is to start. */
  #startMs(): number {
    const { minMs, maxMs, retryMs } = this.#periods
    const share = this.#isUrgent ? URGENT_SHARE : SHARE
    const restMs = minMs === 0 || this.#isUrgent ? Math.max(0, this.#spentMs - FREE_MS) / share : 0
    const pauseMs = Math.max(this.#creditPauseMs, this.#failures > 0 ? Math.min(retryMs, maxMs) : 0)
    const unaskedMs = this.#failures > 0 ? Math.min(this.#backOffMs(), maxMs) : maxMs
    const wantedMs = this.#requested ? Math.min(restMs, unaskedMs) : unaskedMs
    return this.#endedMs + Math.max(pauseMs, wantedMs)
  }

  #backOffMs(): number {
    const { retryMs, maxRetryMs } = this.#periods
    return Math.min(maxRetryMs, retryMs * 2 ** (this.#failures - 1))
  }

  #begin(): void {
    const sinceMs = this.#options.clock.monotonicNow() - this.#endedMs
    const { maxMs } = this.#periods
    const accrued = Math.min(this.#burst, this.#credit + sinceMs / this.#paceMs)
    // A timer that fires a hair early must not leave a debt behind.
    this.#credit = Math.max(0, accrued - 1)
    const reason = this.#failures > 0 ? 'retry' : sinceMs >= maxMs ? 'periodic' : 'requested'
    this.#requested = false
    this.#isUrgent = false
    this.#state = 'running'
    this.#spentMs = Math.max(0, this.#spentMs - sinceMs * SHARE)
    this.#current = this.#run(reason)
  }

  async #run(reason: RunReason): Promise<void> {
    let failed = false
    let failure: unknown
    const { clock } = this.#options
    const beganMs = clock.monotonicNow()
    try {
      const pending = this.#options.run(reason)
      // Work that is synchronous ends in this turn, so that a request right behind it is not measured from later.
      if (pending !== undefined) await pending
    } catch (error) {
      failed = true
      failure = error
    }
    this.#endedMs = clock.monotonicNow()
    if (!this.#isFirst) this.#spentMs += this.#endedMs - beganMs
    this.#spentMs = Math.min(this.#spentMs, FREE_MS + LONGEST_REST_MS * SHARE)
    this.#isFirst = false
    this.#failures = failed ? this.#failures + 1 : 0
    if (failed) this.#options.onError(failure, Math.min(this.#backOffMs(), this.#periods.maxMs))
    if (this.#state !== 'running') return
    this.#state = 'waiting'
    this.#schedule()
  }
}

function checkPeriods(name: string, periods: RunnerPeriods): void {
  const { minMs, maxMs, retryMs, maxRetryMs } = periods
  if (!(minMs >= 0)) throw new RangeError(`Cannot run ${name} every ${minMs} ms: must not be negative`)
  if (!(maxMs >= minMs && maxMs > 0)) {
    throw new RangeError(`Cannot run ${name} every ${maxMs} ms: must be more than 0 and at least minMs (${minMs})`)
  }
  if (!(retryMs > 0 && maxRetryMs >= retryMs)) {
    throw new RangeError(
      `Cannot retry ${name} after ${retryMs} to ${maxRetryMs} ms: both must be more than 0, the second at least the first`,
    )
  }
}
