// One handler for several sources of the same objects, one after the other.

import type { ResourceHandler } from './resource-handler.ts'

/**
 * Objects that only an earlier source had are deleted when the next source is complete, not before. A source for good that ends
 * before it is complete must delete its objects itself.
 */
export class HandOver<T> {
  readonly #handler: ResourceHandler<T>
  /** The keys that only sources for now have delivered. */
  readonly #passing = new Set<string>()

  constructor(handler: ResourceHandler<T>) {
    this.#handler = handler
  }

  /** The handler for the next source. After a complete source for good there is no other. */
  next(stays: 'for good' | 'for now'): ResourceHandler<T> {
    const handler = this.#handler
    const passing = this.#passing
    const former = new Set(passing)
    return {
      onEvents(events) {
        if (stays === 'for now' || former.size > 0) {
          for (const { type, key } of events) {
            former.delete(key)
            if (stays === 'for now' && type === 'set') passing.add(key)
            else passing.delete(key)
          }
        }
        handler.onEvents(events)
      },
      onSynced() {
        for (const key of former) passing.delete(key)
        if (former.size > 0) handler.onEvents(Array.from(former, (key) => ({ type: 'delete', key })))
        former.clear()
        handler.onSynced?.()
      },
      onUnavailable: (error) => handler.onUnavailable?.(error),
      onAvailable: () => handler.onAvailable?.(),
    }
  }
}
