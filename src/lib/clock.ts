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

/** Calls back again and again, until it is cancelled. */
export function every(clock: Clock, periodMs: number, callback: () => void): Timer {
  let timer = clock.setTimeout(tick, periodMs)
  function tick(): void {
    callback()
    timer = clock.setTimeout(tick, periodMs)
  }
  return { cancel: () => timer.cancel() }
}
