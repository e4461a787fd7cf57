// What has to know what was programmed. The rules are in force by then: whatever fails here fails alone, and is tried again
// without another sync.

import type { Clock } from '../lib/clock.ts'
import { TryAgain } from '../lib/try-again.ts'
import type { FrontendAddress, NodeView, ServicePortChange, ServicePortView } from '../model/types.ts'
import type { Answerers } from './flow-cleaner.ts'
import type { FollowerFailures, FollowerName } from './follower-failures.ts'

/** What is in the kernel now, and was not before. */
export interface AppliedSync {
  readonly node: NodeView
  readonly changes: readonly ServicePortChange[]
  /** All service ports: after a comparison with the kernel, and for a follower that failed before. */
  readonly all: Iterable<ServicePortView> | undefined
  /** What that comparison found to be served no longer. */
  readonly gone?: readonly FrontendAddress[] | undefined
  /** What the flow cleaner said of the changes before they were made. */
  readonly answerers?: Answerers | undefined
  /** Another process has taken over: rules and flows are its own. */
  readonly isSucceeded?: boolean
}

export interface Follower {
  readonly name: FollowerName
  /** Throws, or breaks its promise, when it is to be asked again: then `all` has what it has to know. */
  follow(sync: AppliedSync): void | Promise<void>
}

export interface FollowersOptions {
  readonly followers: readonly Follower[]
  /** All that is programmed, for a follower that failed. */
  readonly everything: () => AppliedSync
  readonly failures: (follower: FollowerName) => FollowerFailures
  readonly clock: Clock
}

export class Followers {
  readonly #each: readonly FollowerRun[]

  constructor(options: FollowersOptions) {
    this.#each = options.followers.map((follower) => new FollowerRun(follower, options))
  }

  /** Never throws. */
  follow(sync: AppliedSync): void {
    for (const each of this.#each) each.follow(sync)
  }

  /** From now on nothing is begun. Resolves when what is under way has ended. */
  async stop(): Promise<void> {
    await Promise.all(this.#each.map((each) => each.stop()))
  }
}

class FollowerRun {
  readonly #follower: Follower
  readonly #everything: () => AppliedSync
  readonly #again: TryAgain
  #running: Promise<void> | undefined
  /** There was a sync meanwhile. */
  #hasMissed = false

  constructor(follower: Follower, { everything, failures, clock }: FollowersOptions) {
    this.#follower = follower
    this.#everything = everything
    this.#again = new TryAgain({ clock, again: () => this.#attempt(everything), ...failures(follower.name) })
  }

  follow(sync: AppliedSync): void {
    if (this.#running !== undefined) this.#hasMissed = true
    else if (!this.#again.isWaiting) this.#attempt(() => sync)
  }

  async stop(): Promise<void> {
    this.#again.close()
    this.#hasMissed = false
    await this.#running
  }

  #attempt(sync: () => AppliedSync): void {
    try {
      const pending = this.#follower.follow(sync())
      if (!(pending instanceof Promise)) return this.#again.succeeded()
      this.#hasMissed = false
      this.#running = pending.then(
        () => this.#ended(),
        (error: unknown) => this.#ended(error),
      )
    } catch (error) {
      this.#again.failed(error)
    }
  }

  #ended(error?: unknown): void {
    this.#running = undefined
    if (error !== undefined) this.#again.failed(error)
    else {
      this.#again.succeeded()
      if (this.#hasMissed) this.#attempt(this.#everything)
    }
  }
}
