// Time, handed in rather than reached for, so that a test of "every hour" takes a millisecond.

/** Something scheduled that has not happened yet. */
export interface Timer {
  /** Takes it back. Harmless when it has already happened. */
  cancel(): void
}

export interface Clock {
  /** Milliseconds since 1970: what a person would read off a clock. May jump. */
  now(): number
  /** Milliseconds since some moment in the past. Never jumps: durations are measured with it. */
  monotonicNow(): number
  /** Calls back once, `delayMs` from now. Any finite delay is fine; negative ones count as 0. */
  setTimeout(callback: () => void, delayMs: number): Timer
  /** Calls back once, as soon as the current turn of the event loop has ended. */
  setImmediate(callback: () => void): Timer
}

// Node keeps delays in 32 bits: anything longer fires after 1 ms instead.
const LONGEST_DELAY_MS = 2 ** 31 - 1

/** The machine's clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicNow: () => performance.now(),
  setTimeout: startTimeout,
  setImmediate(callback) {
    const handle = setImmediate(callback)
    return { cancel: () => clearImmediate(handle) }
  },
}

function startTimeout(callback: () => void, delayMs: number): Timer {
  const dueMs = performance.now() + delayMs
  let handle: NodeJS.Timeout
  const arm = (): void => {
    const leftMs = dueMs - performance.now()
    handle =
      leftMs > LONGEST_DELAY_MS
        ? setTimeout(arm, LONGEST_DELAY_MS)
        : setTimeout(callback, Math.max(0, Math.ceil(leftMs)))
  }
  arm()
  return { cancel: () => clearTimeout(handle) }
}

interface Pending {
  readonly dueMs: number
  readonly callback: () => void
}

/** A clock for tests: time stands still until it is told to move. */
export class ManualClock implements Clock {
  #nowMs: number
  #elapsedMs = 0
  readonly #pending = new Set<Pending>()

  constructor(nowMs: number = Date.UTC(2026, 0, 1)) {
    this.#nowMs = nowMs
  }

  now(): number {
    return this.#nowMs + this.#elapsedMs
  }

  monotonicNow(): number {
    return this.#elapsedMs
  }

  setTimeout(callback: () => void, delayMs: number): Timer {
    const pending = { dueMs: this.#elapsedMs + Math.max(0, delayMs), callback }
    this.#pending.add(pending)
    return { cancel: () => this.#pending.delete(pending) }
  }

  setImmediate(callback: () => void): Timer {
    return this.setTimeout(callback, 0)
  }

  /** How many timers wait. */
  get waiting(): number {
    return this.#pending.size
  }

  /** Moves the wall clock alone, as an operator or NTP would. */
  setWallClock(nowMs: number): void {
    this.#nowMs = nowMs - this.#elapsedMs
  }

  /**
   * Lets time pass, calling what becomes due in order, each at its own moment. Asynchronous work that a callback starts
   * gets a turn before the next one is called; what it schedules within the span happens too.
   */
  async advance(byMs: number): Promise<void> {
    const untilMs = this.#elapsedMs + byMs
    await settle()
    for (let next = this.#next(untilMs); next !== undefined; next = this.#next(untilMs)) {
      this.#pending.delete(next)
      this.#elapsedMs = next.dueMs
      next.callback()
      await settle()
    }
    this.#elapsedMs = untilMs
  }

  #next(untilMs: number): Pending | undefined {
    let first: Pending | undefined
    for (const pending of this.#pending) {
      if (pending.dueMs <= untilMs && (first === undefined || pending.dueMs < first.dueMs)) first = pending
    }
    return first
  }
}

/** Lets every promise that can resolve without time or input resolve. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
