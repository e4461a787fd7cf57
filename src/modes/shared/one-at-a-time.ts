// A programmer whose work may last for many turns of the event loop, in which more is asked of it.

import type { NodeView, ServicePortChange, ServicePortView } from '../../model/types.ts'
import type { Programmer, SyncStats } from '../programmer.ts'

/** Does one thing after the other, in the order in which they were asked for. */
export class OneAtATime implements Programmer {
  readonly #programmer: Programmer
  /** The last that was asked for, while it has not ended. */
  #last: Promise<SyncStats> | undefined

  constructor(programmer: Programmer) {
    this.#programmer = programmer
  }

  sync(node: NodeView, changes: readonly ServicePortChange[]): SyncStats | Promise<SyncStats> {
    return this.#next(() => this.#programmer.sync(node, changes))
  }

  syncAll(node: NodeView, views: Iterable<ServicePortView>): SyncStats | Promise<SyncStats> {
    // As they are now: what changes while it goes on is asked for by itself.
    const all = [...views]
    return this.#next(() => this.#programmer.syncAll(node, all))
  }

  tellCommands(isTold: boolean): void {
    this.#programmer.tellCommands?.(isTold)
  }

  close(): void {
    this.#programmer.close()
  }

  #next(work: () => SyncStats | Promise<SyncStats>): SyncStats | Promise<SyncStats> {
    const done = this.#last === undefined ? work() : this.#last.then(work, work)
    if (!(done instanceof Promise)) return done
    this.#last = done
    const forget = () => {
      if (this.#last === done) this.#last = undefined
    }
    done.then(forget, forget)
    return done
  }
}
