// One handler for several sources of the same objects, one after the other.

import type { ResourceHandler } from './resource-handler.ts'

/**
 * What only an earlier source had goes when the next one is complete. Until then it stays: half of the objects would be worse.
 * One that was to stay for good, and ends before it is complete, must have taken back what it brought.
 */
export class HandOver<T> {
  readonly #handler: ResourceHandler<T>
  /** What only sources that were there for now have brought. */
  readonly #passing = new Set<string>()

  constructor(handler: ResourceHandler<T>) {
    this.#handler = handler
  }

  /** The handler for the next source. One that is there for good, once complete, is never followed by another. */
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
