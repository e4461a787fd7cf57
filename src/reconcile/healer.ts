// Restores rules that another program changed: at once, and less often when it keeps changing them.

import type { Clock, Timer } from '../lib/clock.ts'
import type { Logger } from '../lib/log.ts'
import type { SyncStats } from './programmer.ts'
import { HealBudget } from './heal-budget.ts'

export interface HealerOptions {
  /** Compares all rules with the kernel's and writes what is missing. */
  readonly restore: () => SyncStats | Promise<SyncStats>
  /** Called when there was something to restore. */
  readonly onHealed: () => void
  /** Called when it failed: it has to be tried again. */
  readonly onFailed: () => void
  /** Called when it has to wait, because another program changes rules again and again. */
  readonly onPostponed?: () => void
  readonly clock: Clock
  readonly log: Logger
}

/** The pause between two comparisons is shorter. */
const LONG_WAIT_MS = 500

export class Healer {
  readonly #options: HealerOptions
  readonly #budget = new HealBudget()
  #timer: Timer | undefined
  #isHealing = false
  /** Another program changed our rules while we restored them. */
  #again = false
  /** The last one; never rejects. */
  #run: Promise<void> = Promise.resolve()
  #isStopped = false

  constructor(options: HealerOptions) {
    this.#options = options
  }

  heal(): void {
    const { clock } = this.#options
    if (this.#isStopped || this.#timer !== undefined) return
    if (this.#isHealing) {
      this.#again = true
      return
    }
    const waitMs = this.#budget.waitMs(clock.monotonicNow())
    if (waitMs > 0) {
      if (waitMs > LONG_WAIT_MS) this.#options.onPostponed?.()
      this.#timer = clock.setTimeout(() => {
        this.#timer = undefined
        this.heal()
      }, waitMs)
      return
    }
    this.#budget.begin(clock.monotonicNow())
    this.#run = this.#healNow()
  }

  /** From now on nothing is begun. Resolves when what is under way has ended. */
  stop(): Promise<void> {
    this.#isStopped = true
    this.#timer?.cancel()
    return this.#run
  }

  async #healNow(): Promise<void> {
    const { restore, onHealed, onFailed, log, clock } = this.#options
    this.#isHealing = true
    this.#again = false
    try {
      const { transactions, operations } = await restore()
      if (transactions === 0) return
      onHealed()
      log.warn('Restored rules that another program had changed', { operations })
      if (!this.#budget.spend(clock.monotonicNow())) return
      log.error(undefined, 'Another program keeps changing our rules; does another proxy run on this node?')
    } catch (error) {
      log.error(error, 'Cannot restore rules that another program changed')
      onFailed()
    } finally {
      this.#isHealing = false
      if (this.#again) this.heal()
    }
  }
}
