// Collects the events of a burst, and delivers them to the handler at once.

import type { ObjectEvent, ResourceHandler } from './resource-handler.ts'

/** The handler threw; not a failure of the API. */
export class HandlerError extends Error {}

/** More events are delivered at once: objects that wait longer survive the next garbage collection, which is expensive. */
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
   * Delivers at the end of this turn of the event loop: the server sends the events of a burst one by one, but they are read
   * within one turn. `onError` gets the handler's error. Many events are delivered at once.
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

  /** Drops what has not been delivered. */
  discard(): void {
    clearImmediate(this.#scheduled)
    this.#scheduled = undefined
    this.#events = []
  }

  /** Calls the handler, after the events that came before. */
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
