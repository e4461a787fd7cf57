// A token bucket, with the meaning of clientConnection.qps and burst: `burst` requests at once, then `qps` per second.

import type { Clock } from '../lib/clock.ts'
import { sleep } from './sleep.ts'

export interface RateLimits {
  /** 0 means the default of 5; negative means no limit. */
  readonly qps: number
  /** 0 means the default of 10. */
  readonly burst: number
}

export class RateLimiter {
  readonly #qps: number
  readonly #burst: number
  readonly #clock: Clock
  /** When the bucket will be full again. */
  #fullAtMs = 0

  constructor(limits: RateLimits, clock: Clock) {
    this.#qps = limits.qps === 0 ? 5 : limits.qps
    this.#burst = limits.burst <= 0 ? 10 : limits.burst
    this.#clock = clock
  }

  /** Resolves when a request may be sent. Waiters are served in order. */
  async acquire(signal?: AbortSignal): Promise<void> {
    if (this.#qps < 0) return
    const now = this.#clock.monotonicNow()
    const perRequestMs = 1000 / this.#qps
    this.#fullAtMs = Math.max(this.#fullAtMs, now) + perRequestMs
    const waitMs = this.#fullAtMs - now - this.#burst * perRequestMs
    if (waitMs > 0) await sleep(this.#clock, waitMs, signal)
  }
}
