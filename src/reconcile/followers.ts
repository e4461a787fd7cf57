// What has to know what was programmed. The rules are in force by then: whatever fails here fails alone, and is tried again
// without another sync.

import type { Clock } from '../lib/clock.ts'
import { TryAgain } from '../lib/try-again.ts'
import { type Applied, mergeApplied, type NotApplied } from './applied.ts'
import type { FollowerFailures, FollowerName } from './follower-failures.ts'

export interface Follower {
  readonly name: FollowerName
  /** An attempt begins. What this throws is lost. */
  begin?(): void
  /** Throws when it is to be called again: then with all that it has missed. */
  follow(applied: Applied): void
  /** The kernel refused. What this throws is lost. */
  refused?(attempt: NotApplied): void
  /** It only notes what happened: what it missed is not told again. */
  readonly notes?: true
}

export interface FollowersOptions {
  readonly followers: readonly Follower[]
  readonly failures: (follower: FollowerName) => FollowerFailures
  readonly clock: Clock
}

export class Followers {
  readonly #each: readonly OneFollower[]

  constructor({ followers, failures, clock }: FollowersOptions) {
    this.#each = followers.map((follower) => new OneFollower(follower, failures(follower.name), clock))
  }

  /** Never throws. */
  begin(): void {
    for (const each of this.#each) each.begin()
  }

  /** Never throws. */
  follow(applied: Applied): void {
    for (const each of this.#each) each.follow(applied)
  }

  /** Never throws. */
  refused(attempt: NotApplied): void {
    for (const each of this.#each) each.refused(attempt)
  }

  /** From now on nothing is tried again. */
  stop(): void {
    for (const each of this.#each) each.stop()
  }
}

class OneFollower {
  readonly #follower: Follower
  readonly #failures: FollowerFailures
  readonly #again: TryAgain
  /** What it has not followed yet. */
  #missed: Applied | undefined

  constructor(follower: Follower, failures: FollowerFailures, clock: Clock) {
    this.#follower = follower
    this.#failures = failures
    this.#again = new TryAgain({ clock, again: () => this.#attempt(this.#missed!), ...failures })
  }

  begin(): void {
    if (this.#follower.begin !== undefined) this.#note(() => this.#follower.begin!())
  }

  follow(applied: Applied): void {
    if (this.#follower.notes) return this.#note(() => this.#follower.follow(applied))
    const all = this.#missed === undefined ? applied : mergeApplied(this.#missed, applied)
    if (this.#again.isWaiting) this.#missed = all
    else this.#attempt(all)
  }

  refused(attempt: NotApplied): void {
    if (this.#follower.refused !== undefined) this.#note(() => this.#follower.refused!(attempt))
  }

  stop(): void {
    this.#again.close()
  }

  #attempt(applied: Applied): void {
    try {
      this.#follower.follow(applied)
      this.#missed = undefined
      this.#again.succeeded()
    } catch (error) {
      // Its operations may be many, and are not told again.
      this.#missed = { ...applied, operations: { ...applied.operations, commands: undefined } }
      this.#again.failed(error)
    }
  }

  #note(work: () => void): void {
    try {
      work()
      this.#failures.onMended()
    } catch (error) {
      this.#failures.onFailed(error)
    }
  }
}
