// What the watching side tells the rest of the program about one kind of object.

/** One change. `key` is `namespace/name`, or `name` for objects without a namespace. */
export type ObjectEvent<T> =
  | { readonly type: 'set'; readonly key: string; readonly object: T }
  | { readonly type: 'delete'; readonly key: string }

/**
 * Receives the objects of one kind. Calls are synchronous and in order. Events come in batches, one per burst that the
 * API server sent, so that a burst costs one sync. After an interruption only the difference is delivered: objects
 * that did not change meanwhile are not repeated, objects that went away meanwhile are deleted.
 *
 * A handler must not throw: what it throws ends the watch and comes out of watchCluster().
 */
export interface ResourceHandler<T> {
  onEvents(events: readonly ObjectEvent<T>[]): void
  /** Once, when the first complete list has been delivered through onEvents (which may mean that there is nothing). */
  onSynced?(): void
  /** The API server cannot be reached or refuses; what was delivered so far may be stale from now on. Not repeated. */
  onUnavailable?(error: Error): void
  /** The list or watch works: at first, and again after onUnavailable. */
  onAvailable?(): void
}
