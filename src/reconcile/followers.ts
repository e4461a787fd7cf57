// Calls the subscribers of a write: metrics, the flow cleaner, connect retry and others. The rules are in force by then, so one that
// fails does not make the sync fail: it is called again later, without another sync.

import type { Clock } from '../lib/clock.ts'
import { TryAgain } from '../lib/try-again.ts'
import { type Applied, mergeApplied, type NotApplied } from './applied.ts'
import type { FollowerFailures, FollowerName } from './follower-failures.ts'

export interface Follower {
  readonly name: FollowerName
  /** An attempt begins. An error of this is counted and not retried. */
  begin?(): void
  /** If this throws, it is called again later, with all changes since the last call that succeeded. */
  follow(applied: Applied): void
  /** The kernel refused. An error of this is counted and not retried. */
  refused?(attempt: NotApplied): void
  /** This only records events: if it throws, it is not called again for the same write. */
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

  /** Ends all further attempts. */
  stop(): void {
    for (const each of this.#each) each.stop()
  }
}

class OneFollower {
  readonly #follower: Follower
  readonly #failures: FollowerFailures
  readonly #again: TryAgain
  /** The writes, merged, for which the follower threw. */
  #missed: Applied | undefined

  constructor(follower: Follower, failures: FollowerFailures, clock: Clock) {
    this.#follower = follower
    this.#failures = failures
    this.#again = new TryAgain({ clock, again: () => this.#attempt(this.#missed!), ...failures })
  }

  begin(): void {
    if (this.#follower.begin !== undefined) this.#runOnce(() => this.#follower.begin!())
  }

  follow(applied: Applied): void {
    if (this.#follower.notes) return this.#runOnce(() => this.#follower.follow(applied))
    const all = this.#missed === undefined ? applied : mergeApplied(this.#missed, applied)
    if (this.#again.isWaiting) this.#missed = all
    else this.#attempt(all)
  }

  refused(attempt: NotApplied): void {
    if (this.#follower.refused !== undefined) this.#runOnce(() => this.#follower.refused!(attempt))
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
      // The commands may be many: they are not kept for the next attempt.
      this.#missed = { ...applied, operations: { ...applied.operations, commands: undefined } }
      this.#again.failed(error)
    }
  }

  #runOnce(work: () => void): void {
    try {
      work()
      this.#failures.onMended()
    } catch (error) {
      this.#failures.onFailed(error)
    }
  }
}
