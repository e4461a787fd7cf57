// What has been told of a family's service ports, so that what is told as a whole can be told as changes.

import type { ServicePortChange, ServicePortName, ServicePortView } from '../model/types.ts'

export class ToldViews {
  readonly #views = new Map<ServicePortName, ServicePortView>()

  note(changes: readonly ServicePortChange[]): void {
    for (const { name, after } of changes) {
      if (after === undefined) this.#views.delete(name)
      else this.#views.set(name, after)
    }
  }

  /** From what was told to this. A view that did not change is the same object. */
  changesTo(views: Iterable<ServicePortView>): ServicePortChange[] {
    const changes: ServicePortChange[] = []
    const gone = new Map(this.#views)
    for (const after of views) {
      const { name } = after
      const before = gone.get(name)
      gone.delete(name)
      if (before !== after) changes.push({ name, before, after })
    }
    for (const [name, before] of gone) changes.push({ name, before, after: undefined })
    return changes
  }
}
