// One handler for several sources of the same objects, one after the other.

import type { ResourceHandler } from './resource-handler.ts'

/** What only an earlier source had goes when the next one is complete. Until then it stays: half of the objects would be worse. */
export class HandOver<T> {
  readonly #handler: ResourceHandler<T>
  /** Which source set a key last. */
  readonly #sources = new Map<string, number>()
  #source = 0

  constructor(handler: ResourceHandler<T>) {
    this.#handler = handler
  }

  /** The handler for the next source. One that is there for good, once complete, is never followed by another. */
  next(stays: 'for good' | 'for now'): ResourceHandler<T> {
    const handler = this.#handler
    const sources = this.#sources
    const source = ++this.#source
    let isTracked = true
    return {
      onEvents(events) {
        if (isTracked) {
          for (const { type, key } of events) {
            if (type === 'set') sources.set(key, source)
            else sources.delete(key)
          }
        }
        handler.onEvents(events)
      },
      onSynced() {
        const gone = [...sources].flatMap(([key, from]) => (from === source ? [] : [{ type: 'delete' as const, key }]))
        for (const { key } of gone) sources.delete(key)
        if (stays === 'for good') {
          isTracked = false
          sources.clear()
        }
        if (gone.length > 0) handler.onEvents(gone)
        handler.onSynced?.()
      },
      onUnavailable: (error) => handler.onUnavailable?.(error),
      onAvailable: () => handler.onAvailable?.(),
    }
  }
}
