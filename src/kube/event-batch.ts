// Events on their way to a handler, which gets all that one burst brought at once.

import type { ObjectEvent, ResourceHandler } from './resource-handler.ts'

/** The handler threw; not a failure of the API. */
export class HandlerError extends Error {}

/** V8 collects objects cheaply while they are new: those that still wait when it does are copied first, and a megabyte or two later kept. */
const MANY = 32

export class EventBatch<T> {
  readonly #handler: ResourceHandler<T>
  #events: ObjectEvent<T>[] = []
  #scheduled: NodeJS.Immediate | undefined

  constructor(handler: ResourceHandler<T>) {
    this.#handler = handler
  }

  add(event: ObjectEvent<T>): void {
    this.#events.push(event)
  }

  /**
   * Delivers at the end of this turn of the event loop: the server sends each event of a burst by itself, but they are
   * read within one turn. What the handler throws then goes to `onError`. Many events are delivered at once: the objects of
   * a long list are not to wait for each other.
   */
  flushSoon(onError: (error: Error) => void): void {
    if (this.#events.length >= MANY) return this.flush()
    if (this.#events.length === 0 || this.#scheduled !== undefined) return
    this.#scheduled = setImmediate(() => {
      try {
        this.flush()
      } catch (error) {
        onError(error as Error)
      }
    })
  }

  /** Delivers now. */
  flush(): void {
    clearImmediate(this.#scheduled)
    this.#scheduled = undefined
    if (this.#events.length === 0) return
    const events = this.#events
    this.#events = []
    this.#call((handler) => handler.onEvents(events))
  }

  /** Forgets what has not been delivered: it is not wanted any more. */
  discard(): void {
    clearImmediate(this.#scheduled)
    this.#scheduled = undefined
    this.#events = []
  }

  /** Tells the handler something, after the events that came before it. */
  notify(notice: (handler: ResourceHandler<T>) => void): void {
    this.flush()
    this.#call(notice)
  }

  #call(callback: (handler: ResourceHandler<T>) => void): void {
    try {
      callback(this.#handler)
    } catch (cause) {
      throw new HandlerError('Cannot deliver events', { cause })
    }
  }
}
