// Problems with API objects, told once each.
//
// An object is looked at again whenever it changes and both IP families look at it, but a person should read one line
// per problem.

import type { Family } from '../lib/ip.ts'

/** Something about an API object that the proxy cannot honour and ignores. */
export interface Problem {
  /** What it is about: `Service default/web`. */
  readonly object: string
  /** What is wrong and what happens instead. */
  readonly message: string
}

const FAMILY_BIT = { 4: 1, 6: 2 } as const

/** Reports each problem when it appears and stays silent until it has gone away and comes back. Shared by both families. */
export class ProblemLog {
  readonly #report: (problem: Problem) => void
  /** By object, then by message: the families that see it. Objects without problems have no entry. */
  readonly #current = new Map<string, Map<string, number>>()

  constructor(report: (problem: Problem) => void) {
    this.#report = report
  }

  /** All problems of the object, as one family sees it now. What was said before and is not repeated here is over. */
  set(object: string, family: Family, messages: readonly string[]): void {
    const current = this.#current.get(object)
    if (current === undefined && messages.length === 0) return
    const bit = FAMILY_BIT[family]
    const next = new Map<string, number>()
    for (const [message, families] of current ?? []) {
      if ((families & ~bit) !== 0) next.set(message, families & ~bit)
    }
    for (const message of messages) {
      next.set(message, (next.get(message) ?? 0) | bit)
      if (current?.has(message) !== true) this.#report({ object, message })
    }
    if (next.size === 0) this.#current.delete(object)
    else this.#current.set(object, next)
  }

  /** Every problem that holds now. */
  *problems(): Generator<Problem> {
    for (const [object, messages] of this.#current) {
      for (const message of messages.keys()) yield { object, message }
    }
  }
}
