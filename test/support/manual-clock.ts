// A clock for tests: time stands still until it is told to move.

import type { Clock, Timer } from '../../src/lib/clock.ts'

interface Pending {
  readonly dueMs: number
  readonly callback: () => void
}

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
