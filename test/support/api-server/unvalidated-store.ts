// Writes straight into the store of the sandbox's API server, past its rules: what a test stores is served as it is, however
// incomplete or hostile.

import { randomUUID } from 'node:crypto'
import { formatTime } from '../../../packages/sandbox/src/apiserver/time.ts'
import { apiVersionOf } from '../../../packages/sandbox/src/apiserver/resources/resource.ts'
import { keyOf, resourceOf, type ApiObject, type ServedResource } from './objects.ts'
import type { Store } from '../../../packages/sandbox/src/apiserver/store/store.ts'

export class UnvalidatedStore {
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  get version(): number {
    return this.#store.revision
  }

  /** Creates the object, or replaces the one of its name. Returns what is stored, with metadata filled in. */
  apply(object: ApiObject): ApiObject {
    const resource = resourceOf(object)
    const metadata = { ...object.metadata }
    if (resource.namespaced) metadata.namespace ??= 'default'
    const key = keyOf({ ...object, metadata })
    const before = this.#store.collection(resource).get(key)?.object.metadata
    metadata.uid ??= before?.uid ?? randomUUID()
    metadata.creationTimestamp ??= before?.creationTimestamp ?? formatTime(Date.now())
    const after = { ...object, apiVersion: apiVersionOf(resource), kind: resource.kind, metadata }
    this.#store.put(resource, key, after)
    return after
  }

  applyAll(objects: Iterable<ApiObject>): void {
    for (const object of objects) this.apply(object)
  }

  /** Removes an object; false when there is none of that key (`namespace/name` or `name`). */
  delete(resource: ServedResource, key: string): boolean {
    const stored = this.#store.collection(resource).get(key)
    if (stored === undefined) return false
    this.#store.delete(resource, stored)
    return true
  }

  /** Forgets all history, as etcd's compaction does: watches can only begin at the current version. */
  compact(): void {
    this.#store.compact()
  }

  /** The same, and all objects get new versions: a watch cannot begin at any version that was ever told. */
  forget(): void {
    this.#store.renumber(this.#store.revision)
    this.#store.compact()
  }

  /** Goes back to an earlier version counter without a trace, as after a restore from a backup. Objects stay. */
  loseHistory(version: number): void {
    this.#store.renumber(version)
  }
}
