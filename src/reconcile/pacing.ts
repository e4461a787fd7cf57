// When the next write to the kernel may begin. Without timers: the queue reports requests and writes, and asks for the time of the
// next one.

/** All in milliseconds. */
export interface Periods {
  /** At least this long between the end of a write and the start of the next; 0: at once, unless there were many of late. */
  readonly minMs: number
  /** At most this long from the end of a write to the start of the next, wanted or not. At least minMs. */
  readonly maxMs: number
  /** How long after a first failure the next attempt comes. It doubles with each failure in a row. */
  readonly retryMs: number
  /** Where the doubling ends. At least retryMs. */
  readonly maxRetryMs: number
}

/** How much time writes may take without a pause, the part of the time that they get beyond, and the longest pause. */
const FREE_MS = 250
const SHARE = 0.25
const LONGEST_REST_MS = 1000

/**
 * With a minMs of 0: after a quiet time so many writes without a pause, then so many with a short one, and then one in so many
 * milliseconds. A change costs less together with others than alone, so a steady stream of changes is written in groups.
 */
const EAGER_AT_ONCE = 16
const EAGER_QUICK = 32
const EAGER_QUICK_MS = 20
const EAGER_MS = 250

/** The pause before an urgent write, where minMs is longer, and the part of the time that these get. */
const URGENT_MS = 100
const URGENT_SHARE = 0.5

/**
 * Changes and retries, with kube-proxy's guarantees:
 * - minMs between the end of a write and the start of the next (`burst` writes may share one such pause);
 * - with a minMs of 0, no pause as long as writes are short and rare. Sixteen may follow each other at once, then there is one
 *   in 20 ms, and after a second of that one in 250 ms. And a user who may change one service may change it without end: after a
 *   quarter of a second of writes, they get a quarter of the time, and wait for at most a second;
 * - an urgent request waits for a tenth of a second at most, as long as writes are short and rare;
 * - a write at least every maxMs, without any request;
 * - after a failure, an attempt after retryMs, 2 retryMs, 4 retryMs, ... unless something else starts one earlier. Requests do
 *   that, but not within retryMs of the failure: a stream of changes must not hammer what cannot succeed.
 */
export class ChangePacing {
  readonly #name: string
  readonly #givenBurst: number | undefined
  #periods: Periods
  #isRequested = false
  #isUrgent = false
  #failures = 0
  /** Writes that may start without a pause, a fraction while the next one accrues: one per #pace. As of #endedMs. */
  #credit: number
  /** How much time writes took, less what was made up for since, as of #endedMs. The first is not counted: it has to do it all. */
  #spentMs = 0
  #isFirst = true
  #beganMs = 0
  /** When the last write ended, or the queue was started. */
  #endedMs = 0

  constructor(name: string, periods: Periods, burst: number | undefined) {
    checkPeriods(name, periods)
    this.#name = name
    this.#periods = periods
    this.#givenBurst = burst
    this.#credit = this.#burst
  }

  start(nowMs: number): void {
    this.#endedMs = nowMs
  }

  /** False when that changes nothing. */
  request(urgency?: 'urgent'): boolean {
    const isUrgent = urgency === 'urgent'
    if (this.#isRequested && (this.#isUrgent || !isUrgent)) return false
    this.#isRequested = true
    this.#isUrgent ||= isUrgent
    return true
  }

  get isRequested(): boolean {
    return this.#isRequested
  }

  /** A pause under way is measured with the new periods. */
  setPeriods(periods: Periods): void {
    checkPeriods(this.#name, periods)
    this.#periods = periods
    // Credit for a burst is of no use where the new periods allow none.
    this.#credit = Math.min(this.#credit, this.#isFirst ? this.#burst : this.#burst - 1)
  }

  /** When the next write is to start. */
  get startMs(): number {
    const { minMs, maxMs } = this.#periods
    const share = this.#isUrgent ? URGENT_SHARE : SHARE
    const restMs = minMs === 0 || this.#isUrgent ? Math.max(0, this.#spentMs - FREE_MS) / share : 0
    const unaskedMs = this.#failures > 0 ? this.retryInMs : maxMs
    const wantedMs = this.#isRequested ? Math.min(restMs, unaskedMs) : unaskedMs
    return Math.max(this.#endedMs + Math.max(this.#creditPauseMs, wantedMs), this.refusedUntilMs)
  }

  /** After a failure nothing starts before. */
  get refusedUntilMs(): number {
    const { retryMs, maxMs } = this.#periods
    return this.#failures > 0 ? this.#endedMs + Math.min(retryMs, maxMs) : 0
  }

  /** How long after the last failure the next attempt comes at the latest. */
  get retryInMs(): number {
    const { retryMs, maxRetryMs, maxMs } = this.#periods
    return Math.min(maxRetryMs, retryMs * 2 ** (this.#failures - 1), maxMs)
  }

  /** What a write that starts now serves, besides what was asked for. */
  begin(nowMs: number): 'change' | 'compare' | 'retry' {
    const sinceMs = nowMs - this.#endedMs
    // A timer that fires a hair early must not leave a debt behind.
    this.#credit = Math.max(0, Math.min(this.#burst, this.#credit + sinceMs / this.#paceMs) - 1)
    this.#spentMs = Math.max(0, this.#spentMs - sinceMs * SHARE)
    this.#isRequested = false
    this.#isUrgent = false
    this.#beganMs = nowMs
    if (this.#failures > 0) return 'retry'
    return sinceMs >= this.#periods.maxMs ? 'compare' : 'change'
  }

  end(nowMs: number, outcome: 'done' | 'failed'): void {
    this.#endedMs = nowMs
    if (!this.#isFirst) this.#spentMs += nowMs - this.#beganMs
    this.#spentMs = Math.min(this.#spentMs, FREE_MS + LONGEST_REST_MS * SHARE)
    this.#isFirst = false
    this.#failures = outcome === 'failed' ? this.#failures + 1 : 0
  }

  /** How many writes may follow each other without the pause for those that keep coming. */
  get #burst(): number {
    return this.#givenBurst ?? (this.#periods.minMs === 0 ? EAGER_AT_ONCE + EAGER_QUICK : 1)
  }

  /** How long it takes until there may be one more. */
  get #paceMs(): number {
    return this.#periods.minMs || EAGER_MS
  }

  /** The pause before the next write, by those that there were of late. */
  get #creditPauseMs(): number {
    const isQuick = this.#periods.minMs === 0 && this.#givenBurst === undefined && this.#credit < EAGER_QUICK + 1
    const paceMs = this.#isUrgent ? Math.min(URGENT_MS, this.#paceMs) : this.#paceMs
    return Math.max(Math.max(0, 1 - this.#credit) * paceMs, isQuick ? EAGER_QUICK_MS : 0)
  }
}

function checkPeriods(name: string, periods: Periods): void {
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

/**
 * For tables that other programs use, too, and change all day long: the pause between two comparisons is a multiple of what one
 * takes.
 */
export interface SharedTables {
  /** How long to wait for the end of a group of changes, such as the commands of a script. */
  readonly groupMs: number
  /** The part of the time that comparisons may take. */
  readonly share: number
  /** The same without any sign of a change. */
  readonly idleShare: number
}

/** The pause before rules are restored, as long as there is a budget for it. */
const HEAL_PAUSE_MS = 50
/** How many times in a row rules may be restored, and how long one more takes to accrue. */
const HEAL_BUDGET = 100
const HEAL_RECOVERY_MS = 2000
/** A wait that is longer means that rules are not restored soon. */
const LONG_WAIT_MS = 500

/**
 * Rules that another program changed. A program that flushes them gets them back at once. One that puts back what we take away,
 * such as a second proxy with other settings, would keep both of us busy for ever: from then on we restore only now and then.
 */
export class HealPacing {
  readonly #shared: SharedTables | undefined
  #isWanted = false
  /** A comparison that takes its part of the time only may begin. */
  #shareMs = 0
  #idleShareMs = 0
  /** The group of changes is complete. */
  #groupMs = 0
  /** The budget allows it. */
  #budgetMs = 0
  /** When the budget will be full again. */
  #fullMs = 0
  /** Since it was full. */
  #wasUsedUp = false

  constructor(shared?: SharedTables) {
    this.#shared = shared
  }

  /** Another program changed something, or may have. False: rules are not compared for it now. */
  request(nowMs: number, certainty: 'certain' | 'perhaps'): boolean {
    if (certainty === 'perhaps' && (this.#isWanted || nowMs < this.#idleShareMs)) return false
    if (!this.#isWanted) this.#groupMs = certainty === 'perhaps' ? 0 : nowMs + (this.#shared?.groupMs ?? 0)
    this.#isWanted = true
    return true
  }

  /** When to compare rules; Infinity: not for this reason. */
  get startMs(): number {
    return this.#isWanted ? Math.max(this.#budgetMs, this.#compareMs) : Infinity
  }

  /** Whether a write that begins now, for whatever reason, should compare. */
  isDue(nowMs: number): boolean {
    return this.#isWanted && nowMs >= this.#compareMs
  }

  /** Whether rules have to wait because they were restored again and again. */
  isPostponed(nowMs: number): boolean {
    return this.#budgetMs - nowMs > LONG_WAIT_MS
  }

  /** A comparison begins: it finds all changes until now. */
  begin(nowMs: number): void {
    this.#isWanted = false
    this.#budgetMs = nowMs + HEAL_PAUSE_MS
  }

  /** The comparison has ended. */
  end(nowMs: number, tookMs: number): void {
    if (this.#shared === undefined) return
    this.#shareMs = nowMs + tookMs / this.#shared.share
    this.#idleShareMs = nowMs + tookMs / this.#shared.idleShare
  }

  /** The comparison restored something. True when this has just used up the budget. */
  spend(nowMs: number): boolean {
    if (nowMs >= this.#fullMs) this.#wasUsedUp = false
    this.#fullMs = Math.max(this.#fullMs, nowMs) + HEAL_RECOVERY_MS
    const nextMs = this.#fullMs - (HEAL_BUDGET - 1) * HEAL_RECOVERY_MS
    if (nextMs <= nowMs) return false
    this.#budgetMs = Math.max(this.#budgetMs, nextMs)
    const isFirst = !this.#wasUsedUp
    this.#wasUsedUp = true
    return isFirst
  }

  get #compareMs(): number {
    return Math.max(this.#groupMs, this.#shareMs)
  }
}
