// A programmer whose work may last for many turns of the event loop, in which more is asked of it.

import { InOrder } from '../lib/in-order.ts'
import type { NodeView, ServicePortChange, ServicePortView } from '../model/types.ts'
import type { FinishStats, Programmer, SyncStats } from '../reconcile/programmer.ts'

/** Does one thing after the other, in the order in which they were asked for. */
export class OneAtATime implements Programmer {
  readonly #programmer: Programmer
  readonly #order: InOrder

  /** What else is done with the same things asks for its turn in the same order. */
  constructor(programmer: Programmer, order: InOrder = new InOrder()) {
    this.#programmer = programmer
    this.#order = order
  }

  sync(node: NodeView, changes: readonly ServicePortChange[]): SyncStats | Promise<SyncStats> {
    return this.#order.do(() => this.#programmer.sync(node, changes))
  }

  syncAll(node: NodeView, views: Iterable<ServicePortView>): SyncStats | Promise<SyncStats> {
    // As they are now: what changes while it goes on is asked for by itself.
    const all = [...views]
    return this.#order.do(() => this.#programmer.syncAll(node, all))
  }

  finish(): FinishStats | void | Promise<FinishStats | void> {
    return this.#order.do(() => this.#programmer.finish?.())
  }

  tellCommands(isTold: boolean): void {
    this.#programmer.tellCommands?.(isTold)
  }

  close(): void {
    this.#programmer.close()
  }
}
