// The reconcile queue of one IP family: it makes all writes to the kernel for the family, one after the other.

import type { Clock, Timer } from '../lib/clock.ts'
import { ChangePacing, HealPacing, type Periods, type SharedTables } from './pacing.ts'

/**
 * Why rules are written: what was decided changed, another program changed the rules, the last attempt failed, or it was time for
 * a comparison.
 */
export type Cause = 'change' | 'heal' | 'retry' | 'compare'

/** Work that is less urgent than the rules. It is called after each write of rules and when it is due, never beside another. */
export interface Chore {
  /** Resolves with the milliseconds after which there is more to do; undefined: nothing before the next write. */
  run(): Promise<number | undefined>
  /** It is called again after that time. */
  onFailed(error: unknown, againInMs: number): void
  /** The first success after failures. */
  onMended(): void
}

export interface QueueOptions {
  /** For messages. */
  readonly name: string
  readonly clock: Clock
  readonly periods: Periods
  /** How many writes may follow each other without waiting for minMs after a quiet time. One when not given. */
  readonly burst?: number
  /** For tables that other programs use, too. */
  readonly sharedTables?: SharedTables | undefined
  /** Brings the rules up to date. A rejected promise is a failure, and is followed by another attempt. */
  readonly write: (cause: Cause) => Promise<WriteResult>
  readonly chores?: readonly Chore[]
  /** Called after each failed write, with the time until the next attempt at the latest. */
  readonly onError: (error: unknown, cause: Cause, retryInMs: number) => void
  /** Called when rules that another program changed again and again have to wait. */
  readonly onPostponed?: () => void
  /** Called once when another program begins to change rules again and again. */
  readonly onFight?: () => void
}

export interface WriteResult {
  /** All rules were compared with the kernel's. */
  readonly isComparison: boolean
  /** It restored something that another program had changed. */
  readonly isHealed: boolean
}

/** The first and the longest pause before a chore that failed is called again; it doubles in between. */
const FIRST_AGAIN_MS = 100
const LONGEST_AGAIN_MS = 30_000

type State = 'idle' | 'waiting' | 'running' | 'stopped'

/**
 * Requests made before a write starts are served by that write; one made during a write causes another. Writes start in a turn of
 * their own. So all the events of one read from the API, however small minMs is, cost one write.
 */
export class ReconcileQueue {
  readonly #options: QueueOptions
  readonly #changes: ChangePacing
  readonly #heals: HealPacing
  readonly #chores: readonly PacedChore[]
  #state: State = 'idle'
  #timer: Timer | undefined
  #current: Promise<void> | undefined

  constructor(options: QueueOptions) {
    const { name, periods, burst, sharedTables, chores = [], clock } = options
    this.#options = options
    this.#changes = new ChangePacing(name, periods, burst)
    this.#heals = new HealPacing(sharedTables)
    this.#chores = chores.map((chore) => new PacedChore(chore, clock))
  }

  /** Begins to write. Requests made before are served now. */
  start(): void {
    if (this.#state !== 'idle') return
    this.#state = 'waiting'
    this.#changes.start(this.#nowMs)
    this.#schedule()
  }

  /** Asks for a write. One that is urgent does not wait for minMs, and takes no more than its share of the time. */
  request(urgency?: 'urgent'): void {
    if (this.#changes.request(urgency)) this.#schedule()
  }

  /** Another program changed the rules, or may have. False: they are not compared for it now. */
  heal(certainty: 'certain' | 'perhaps' = 'certain'): boolean {
    if (!this.#heals.request(this.#nowMs, certainty)) return false
    if (this.#heals.isPostponed(this.#nowMs)) this.#options.onPostponed?.()
    this.#schedule()
    return true
  }

  /** This chore has work. */
  wake(chore: Chore): void {
    this.#chores.find((each) => each.chore === chore)?.wake()
    this.#schedule()
  }

  /** In how many milliseconds the changes that wait are written; undefined: none wait, or a write is under way. */
  get nextWriteMs(): number | undefined {
    return this.#state === 'waiting' && this.#changes.isRequested ? this.#writeMs - this.#nowMs : undefined
  }

  /** A pause under way is measured with the new periods. */
  setPeriods(periods: Periods): void {
    this.#changes.setPeriods(periods)
    this.#schedule()
  }

  /** Starts nothing more. Resolves when the current write or chore has ended. */
  async stop(): Promise<void> {
    this.#state = 'stopped'
    this.#timer?.cancel()
    await this.#current
  }

  get #nowMs(): number {
    return this.#options.clock.monotonicNow()
  }

  /** When to write rules. After a failure, not before the retry pause is over. */
  get #writeMs(): number {
    return Math.min(this.#changes.startMs, Math.max(this.#heals.startMs, this.#changes.refusedUntilMs))
  }

  /** Arms the timer for the next write or chore. Called whenever something changes that its time depends on. */
  #schedule(): void {
    if (this.#state !== 'waiting') return
    this.#timer?.cancel()
    const { clock } = this.#options
    let nextMs = this.#writeMs
    for (const { dueMs } of this.#chores) nextMs = Math.min(nextMs, dueMs)
    const waitMs = nextMs - this.#nowMs
    this.#timer =
      waitMs <= 0
        ? clock.setImmediate(() => this.#begin())
        : clock.setTimeout(() => this.#schedule(), Math.ceil(waitMs))
  }

  #begin(): void {
    this.#state = 'running'
    this.#current = this.#work()
  }

  async #work(): Promise<void> {
    const isWritten = this.#writeMs <= this.#nowMs && (await this.#write())
    for (const chore of this.#chores) {
      if (this.#state !== 'running') return
      if (isWritten ? !chore.isWaiting : chore.dueMs <= this.#nowMs) await chore.run()
    }
    if (this.#state !== 'running') return
    this.#state = 'waiting'
    this.#schedule()
  }

  async #write(): Promise<boolean> {
    const { write, onError, onFight } = this.#options
    const beganMs = this.#nowMs
    const hasToHeal = this.#heals.isDue(beganMs)
    const reason = this.#changes.begin(beganMs)
    const cause = hasToHeal && reason !== 'retry' ? 'heal' : reason
    if (hasToHeal) this.#heals.begin(beganMs)
    try {
      const { isComparison, isHealed } = await write(cause)
      this.#changes.end(this.#nowMs, 'done')
      if (isComparison) this.#heals.end(this.#nowMs, this.#nowMs - beganMs)
      if (isHealed && this.#heals.spend(this.#nowMs)) onFight?.()
      return true
    } catch (error) {
      this.#changes.end(this.#nowMs, 'failed')
      onError(error, cause, this.#changes.retryInMs)
      return false
    }
  }
}

class PacedChore {
  readonly chore: Chore
  readonly #clock: Clock
  dueMs = Infinity
  #failures = 0

  constructor(chore: Chore, clock: Clock) {
    this.chore = chore
    this.#clock = clock
  }

  /** The last attempt failed, and the next one has a time. */
  get isWaiting(): boolean {
    return this.#failures > 0 && this.dueMs > this.#clock.monotonicNow()
  }

  wake(): void {
    if (this.#failures === 0) this.dueMs = Math.min(this.dueMs, this.#clock.monotonicNow())
  }

  async run(): Promise<void> {
    this.dueMs = Infinity
    try {
      const againInMs = (await this.chore.run()) ?? Infinity
      this.dueMs = Math.min(this.dueMs, this.#clock.monotonicNow() + againInMs)
      if (this.#failures > 0) this.chore.onMended()
      this.#failures = 0
    } catch (error) {
      const againInMs = Math.min(LONGEST_AGAIN_MS, FIRST_AGAIN_MS * 2 ** this.#failures)
      this.#failures++
      this.dueMs = this.#clock.monotonicNow() + againInMs
      this.chore.onFailed(error, againInMs)
    }
  }
}
