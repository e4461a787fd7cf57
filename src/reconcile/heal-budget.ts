// How often rules are restored that others change.

/** As fast as this when it happens now and then. */
const PAUSE_MS = 50
/** So many times in a row, and then only as often as the budget recovers. */
const BUDGET = 100
const RECOVERY_MS = 2000

/**
 * A program that flushes rules gets them back at once. One that puts back what we take away, such as a second proxy with
 * other settings, would keep both of us busy for ever: from then on we restore only now and then.
 */
export class HealBudget {
  /** When the budget will be full again. */
  #fullMs = 0
  #earliestMs = 0
  /** Since it was full. */
  #wasUsedUp = false

  /** How long to wait before rules may be restored. */
  waitMs(nowMs: number): number {
    return Math.max(0, this.#earliestMs - nowMs)
  }

  /** Rules are compared now. */
  begin(nowMs: number): void {
    this.#earliestMs = nowMs + PAUSE_MS
  }

  /** The comparison that began last had something to restore. True the first time that the budget is used up by that. */
  spend(nowMs: number): boolean {
    if (nowMs >= this.#fullMs) this.#wasUsedUp = false
    this.#fullMs = Math.max(this.#fullMs, nowMs) + RECOVERY_MS
    const nextMs = this.#fullMs - (BUDGET - 1) * RECOVERY_MS
    if (nextMs <= nowMs) return false
    this.#earliestMs = Math.max(this.#earliestMs, nextMs)
    const isFirst = !this.#wasUsedUp
    this.#wasUsedUp = true
    return isFirst
  }
}
