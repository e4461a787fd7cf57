// Logs when the program stood still: one turn of the event loop, or one system call, took so long that no request was answered.

import type { Clock, Timer } from '../lib/clock.ts'
import { systemClock } from '../lib/clock.ts'
import type { Logger } from '../lib/log.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { takeLongestCall, type TimedCall } from '../system/libc.ts'
import { Longest } from './longest.ts'

export interface TripwireOptions {
  readonly metrics: Pick<Metrics, 'longestTurn' | 'longestCall'>
  readonly log: Pick<Logger, 'warn'>
  readonly clock: Clock
  /** For how long the event loop has been at work since the start, in milliseconds. */
  readonly activeMs: () => number
  readonly takeLongestCall: () => TimedCall
}

/** Longer than this is worth a line of the log. */
const TOO_LONG_MS = 1000
/** How often the timer fires: while there is work, and at rest. A longer turn of the event loop makes it late. */
const BUSY_MS = 100
const IDLE_MS = TOO_LONG_MS
/** The busy part of the time from which on the shorter period is used. */
const BUSY = 0.05
/** No timer is on time to the millisecond. */
const SLACK_MS = 5

export class Tripwire {
  readonly #options: TripwireOptions
  readonly #turns: Longest
  readonly #calls: Longest
  #timer: Timer | undefined
  #active: number

  constructor(options: TripwireOptions) {
    const { clock, activeMs } = options
    this.#options = options
    const now = () => clock.monotonicNow()
    this.#turns = new Longest(now)
    this.#calls = new Longest(now)
    this.#active = activeMs()
  }

  start(): void {
    this.#arm(BUSY_MS)
  }

  stop(): void {
    this.#timer?.cancel()
  }

  #arm(periodMs: number): void {
    const { clock } = this.#options
    const armedMs = clock.monotonicNow()
    this.#timer = clock.setTimeout(() => this.#look(periodMs, clock.monotonicNow() - armedMs), periodMs)
  }

  #look(periodMs: number, passedMs: number): void {
    const { log, metrics, activeMs } = this.#options
    const active = activeMs()
    const atWorkMs = active - this.#active
    this.#active = active
    const call = this.#options.takeLongestCall()
    this.#calls.add(call.ms)
    const lateMs = passedMs - periodMs
    // If the timer is late without work, the process was stopped, or the machine slept.
    const turnMs = lateMs <= SLACK_MS ? 0 : Math.min(passedMs, atWorkMs)
    this.#turns.add(turnMs)
    metrics.longestTurn.with().set(this.#turns.value / 1000)
    metrics.longestCall.with().set(this.#calls.value / 1000)
    if (call.ms >= TOO_LONG_MS) {
      log.warn('A system call took very long, and nobody was answered meanwhile', { call: call.name, tookMs: call.ms })
    } else if (turnMs >= TOO_LONG_MS) {
      log.warn('The program was busy with one thing for very long, and nobody was answered meanwhile', {
        tookMs: turnMs,
        longestCall: call.name,
        callMs: call.ms,
      })
    }
    this.#arm(atWorkMs >= BUSY * passedMs ? BUSY_MS : IDLE_MS)
  }
}

export function openTripwire(metrics: Metrics, log: Logger): Tripwire {
  const activeMs = () => performance.eventLoopUtilization().active
  return new Tripwire({ metrics, log, clock: systemClock, activeMs, takeLongestCall })
}
