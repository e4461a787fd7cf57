// The events of one kind of object.

/** One change. `key` is `namespace/name`, or `name` for objects without a namespace. */
export type ObjectEvent<T> =
  | { readonly type: 'set'; readonly key: string; readonly object: T }
  | { readonly type: 'delete'; readonly key: string }

/**
 * Receives the objects of one kind. Calls are synchronous and in order. Events come in batches, one per burst that the
 * API server sent, so that a burst costs one sync. After an interruption only the difference is delivered: objects
 * that did not change meanwhile are not repeated, objects that went away meanwhile are deleted.
 *
 * A handler must not throw: its error ends the watch, and watchCluster() rejects with it.
 */
export interface ResourceHandler<T> {
  onEvents(events: readonly ObjectEvent<T>[]): void
  /** Once, after the first complete list, which may be empty. */
  onSynced?(): void
  /** The API server cannot be reached or refuses: the objects may be stale from now on. Not repeated. */
  onUnavailable?(error: Error): void
  /** The list or watch works: at first, and again after onUnavailable. */
  onAvailable?(): void
}
