// A programmer whose finish() is called after each sync and when it is due, as the queue of a family does.

import type { Clock, Timer } from '../../src/lib/clock.ts'
import type { NodeView, ServicePortChange, ServicePortView } from '../../src/model/types.ts'
import type { Programmer, SyncStats } from '../../src/reconcile/programmer.ts'

export class FinishingProgrammer implements Programmer {
  /** How often the programmer did not know what is in the kernel. */
  unsure = 0
  readonly #programmer: Programmer
  readonly #clock: Clock
  #last: Promise<unknown> = Promise.resolve()
  #timer: Timer | undefined

  constructor(programmer: Programmer, clock: Clock) {
    this.#programmer = programmer
    this.#clock = clock
  }

  sync(node: NodeView, changes: readonly ServicePortChange[]): Promise<SyncStats> {
    return this.#inTurn(() => this.#programmer.sync(node, changes))
  }

  syncAll(node: NodeView, views: Iterable<ServicePortView>): Promise<SyncStats> {
    return this.#inTurn(() => this.#programmer.syncAll(node, views))
  }

  close(): void {
    this.#timer?.cancel()
    this.#programmer.close()
  }

  #inTurn(work: () => Promise<SyncStats>): Promise<SyncStats> {
    const done = this.#last.then(async () => {
      const stats = await work()
      await this.#finish()
      return stats
    })
    this.#last = done.catch(() => {})
    return done
  }

  async #finish(): Promise<void> {
    this.#timer?.cancel()
    const finished = await this.#programmer.finish?.()
    if (!finished) return
    if (finished.isUnsure) this.unsure++
    if (finished.againInMs === undefined) return
    this.#timer = this.#clock.setTimeout(() => {
      this.#last = this.#last.then(() => this.#finish())
    }, finished.againInMs)
  }
}
