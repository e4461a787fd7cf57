// The cluster's state in memory: objects by resource, one counter of versions, and the history that watches replay.

import { randomUUID } from 'node:crypto'
import { keyOf, pathOf, resourceOf, type ApiObject, type ServedResource } from './objects.ts'

/** One change. `before` is what was there, `after` what is; one of them may be missing. */
export interface StoreChange {
  readonly version: number
  readonly before: ApiObject | undefined
  readonly after: ApiObject | undefined
}

type Listener = (change: StoreChange) => void

class Collection {
  readonly objects = new Map<string, ApiObject>()
  readonly history: StoreChange[] = []
  readonly listeners = new Set<Listener>()
  /** Changes up to this version have been forgotten. */
  forgottenTo = 0
}

export class ObjectStore {
  readonly #collections = new Map<string, Collection>()
  #version: number

  constructor(firstVersion: number = 1) {
    this.#version = firstVersion
  }

  get version(): number {
    return this.#version
  }

  collection(resource: ServedResource): Collection {
    const path = pathOf(resource)
    let collection = this.#collections.get(path)
    if (collection === undefined) this.#collections.set(path, (collection = new Collection()))
    return collection
  }

  /** Creates the object, or replaces the one of its name. Returns what is stored, with metadata filled in. */
  apply(object: ApiObject): ApiObject {
    const resource = resourceOf(object)
    const collection = this.collection(resource)
    const metadata = { ...object.metadata }
    if (resource.namespaced) metadata.namespace ??= 'default'
    const key = keyOf({ ...object, metadata })
    const before = collection.objects.get(key)
    metadata.uid ??= before?.metadata.uid ?? randomUUID()
    metadata.creationTimestamp ??= before?.metadata.creationTimestamp ?? rfc3339(new Date())
    metadata.resourceVersion = String(++this.#version)
    const after: ApiObject = { ...object, apiVersion: resource.apiVersion, kind: resource.kind, metadata }
    collection.objects.set(key, after)
    this.#changed(collection, { version: this.#version, before, after })
    return after
  }

  /** Applies all of them. */
  applyAll(objects: Iterable<ApiObject>): void {
    for (const object of objects) this.apply(object)
  }

  /** Removes an object; false when there is none of that key (`namespace/name` or `name`). */
  delete(resource: ServedResource, key: string): boolean {
    const collection = this.collection(resource)
    const stored = collection.objects.get(key)
    if (stored === undefined) return false
    collection.objects.delete(key)
    const version = ++this.#version
    // The last state of a deleted object carries the version of its deletion.
    const before = { ...stored, metadata: { ...stored.metadata, resourceVersion: String(version) } }
    this.#changed(collection, { version, before, after: undefined })
    return true
  }

  /** Forgets all history, as etcd's compaction does: watches can only begin at the current version. */
  compact(): void {
    for (const collection of this.#collections.values()) {
      collection.history.length = 0
      collection.forgottenTo = this.#version
    }
  }

  /** Goes back to an earlier version counter without a trace, as after a restore from a backup. Objects stay. */
  loseHistory(version: number): void {
    this.#version = version
    for (const collection of this.#collections.values()) {
      collection.history.length = 0
      collection.forgottenTo = 0
      for (const [key, object] of collection.objects) {
        const metadata = { ...object.metadata, resourceVersion: String(++this.#version) }
        collection.objects.set(key, { ...object, metadata })
      }
    }
  }

  /** Changes after a version, or undefined when they have been forgotten. */
  changesSince(resource: ServedResource, version: number): readonly StoreChange[] | undefined {
    const collection = this.collection(resource)
    if (version < collection.forgottenTo) return undefined
    return collection.history.filter((change) => change.version > version)
  }

  /** Calls back on every change of the resource; returns how to end that. */
  subscribe(resource: ServedResource, listener: Listener): () => void {
    const { listeners } = this.collection(resource)
    listeners.add(listener)
    return () => listeners.delete(listener)
  }

  #changed(collection: Collection, change: StoreChange): void {
    collection.history.push(change)
    for (const listener of collection.listeners) listener(change)
  }
}

function rfc3339(date: Date): string {
  return `${date.toISOString().slice(0, 19)}Z`
}
