// Calls the subscribers of a write: metrics, the flow cleaner, connect retry and others. The rules are in force by then, so one that
// fails does not make the sync fail: it is called again later, without another sync.

import type { Clock } from '../lib/clock.ts'
import { TryAgain } from '../lib/try-again.ts'
import { type Applied, mergeApplied, type NotApplied } from './applied.ts'
import type { SubscriberFailures, SubscriberName } from './subscriber-failures.ts'

export interface Subscriber {
  readonly name: SubscriberName
  /** An attempt begins. An error of this is counted and not retried. */
  begin?(): void
  /** If this throws, it is called again later, with all changes since the last call that succeeded. */
  follow(applied: Applied): void
  /** The kernel refused. An error of this is counted and not retried. */
  refused?(attempt: NotApplied): void
  /** This only records events: if it throws, it is not called again for the same write. */
  readonly notes?: true
}

export interface SubscribersOptions {
  readonly subscribers: readonly Subscriber[]
  readonly failures: (subscriber: SubscriberName) => SubscriberFailures
  readonly clock: Clock
}

export class Subscribers {
  readonly #each: readonly OneSubscriber[]

  constructor({ subscribers, failures, clock }: SubscribersOptions) {
    this.#each = subscribers.map((subscriber) => new OneSubscriber(subscriber, failures(subscriber.name), clock))
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

class OneSubscriber {
  readonly #subscriber: Subscriber
  readonly #failures: SubscriberFailures
  readonly #again: TryAgain
  /** The writes, merged, for which the subscriber threw. */
  #missed: Applied | undefined

  constructor(subscriber: Subscriber, failures: SubscriberFailures, clock: Clock) {
    this.#subscriber = subscriber
    this.#failures = failures
    this.#again = new TryAgain({ clock, again: () => this.#attempt(this.#missed!), ...failures })
  }

  begin(): void {
    if (this.#subscriber.begin !== undefined) this.#runOnce(() => this.#subscriber.begin!())
  }

  follow(applied: Applied): void {
    if (this.#subscriber.notes) return this.#runOnce(() => this.#subscriber.follow(applied))
    const all = this.#missed === undefined ? applied : mergeApplied(this.#missed, applied)
    if (this.#again.isWaiting) this.#missed = all
    else this.#attempt(all)
  }

  refused(attempt: NotApplied): void {
    if (this.#subscriber.refused !== undefined) this.#runOnce(() => this.#subscriber.refused!(attempt))
  }

  stop(): void {
    this.#again.close()
  }

  #attempt(applied: Applied): void {
    try {
      this.#subscriber.follow(applied)
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
