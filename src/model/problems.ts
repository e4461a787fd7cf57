// Problems with API objects, each reported once.
//
// Both IP families read an object again whenever it changes, but an operator should see one line per problem.

import { systemClock, type Clock } from '../lib/clock.ts'
import type { NamespacedName } from '../kube/types.ts'
import type { Family } from '../lib/ip.ts'

/** Something about an API object that the proxy cannot honour and ignores. */
export interface Problem {
  /** What it is about: `Service default/web`. */
  readonly object: string
  /** What is wrong and what happens instead. */
  readonly message: string
  /** The Service whose owner is told by an Event; absent: it is logged alone. */
  readonly owner?: NamespacedName
  /** Of which kind the Event is; absent: AnnotationIgnored. */
  readonly event?: 'ServiceIsLarge'
}

const FAMILY_BIT = { 4: 1, 6: 2 } as const

/**
 * A user may write bad objects as fast as the API server takes them. This many problems are reported at once, then one per
 * second; the others are counted.
 */
const BURST = 100
const PER_SECOND = 1

/** Reports each problem when it appears and stays silent until it has gone away and comes back. Shared by both families. */
export class ProblemLog {
  readonly #report: (problem: Problem) => void
  /** By object, then by message: the families that see it. Objects without problems have no entry. */
  readonly #current = new Map<string, Map<string, number>>()
  readonly #clock: Pick<Clock, 'monotonicNow'>
  /** How many may be reported, as of #countedMs. */
  #allowance = BURST
  #countedMs: number
  #suppressed = 0

  constructor(report: (problem: Problem) => void, clock: Pick<Clock, 'monotonicNow'> = systemClock) {
    this.#report = report
    this.#clock = clock
    this.#countedMs = clock.monotonicNow()
  }

  /** All problems of the object, as one family sees it now. Those that are not in `messages` any more are over. */
  set(object: string, family: Family, messages: readonly string[], told: Pick<Problem, 'owner' | 'event'> = {}): void {
    // Hashing a new string is expensive, and mostly the map is empty.
    const current = this.#current.size === 0 ? undefined : this.#current.get(object)
    if (current === undefined && messages.length === 0) return
    const bit = FAMILY_BIT[family]
    const next = new Map<string, number>()
    for (const [message, families] of current ?? []) {
      if ((families & ~bit) !== 0) next.set(message, families & ~bit)
    }
    for (const message of messages) {
      next.set(message, (next.get(message) ?? 0) | bit)
      if (current?.has(message) !== true) this.#reportUpToRate({ object, message, ...told })
    }
    if (next.size === 0) this.#current.delete(object)
    else this.#current.set(object, next)
  }

  #reportUpToRate(problem: Problem): void {
    const nowMs = this.#clock.monotonicNow()
    this.#allowance = Math.min(BURST, this.#allowance + ((nowMs - this.#countedMs) / 1000) * PER_SECOND)
    this.#countedMs = nowMs
    if (this.#allowance < 1) {
      if (this.#suppressed++ === 0)
        this.#report({ object: problem.object, message: 'too many problems; not all are logged' })
      return
    }
    this.#allowance--
    const suppressed = this.#suppressed
    this.#suppressed = 0
    this.#report(
      suppressed === 0 ? problem : { ...problem, message: `${problem.message} (${suppressed} others were not logged)` },
    )
  }

  /** Every problem that holds now. */
  *problems(): Generator<Problem> {
    for (const [object, messages] of this.#current) {
      for (const message of messages.keys()) yield { object, message }
    }
  }
}
