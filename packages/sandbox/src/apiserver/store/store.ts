// The state of the cluster, in memory: every object of every resource, and one counter that numbers the writes.

import { Collection, type HistoryLimits } from './collection.ts'
import { Stored } from './stored.ts'
import type { ApiObject } from '../objects/meta.ts'
import type { Resource } from '../resources/resource.ts'

export interface StoreOptions {
  /** How many changes of each resource are remembered, at least, unless they are very large. */
  readonly historyLimit?: number
  /** How many values the objects of these changes may have together, at least. */
  readonly historyValues?: number
}

const defaultHistoryLimit = 8192
/** Some 10 MB for each resource that changes so much: 80 changes of a slice with a hundred endpoints. */
const defaultHistoryValues = 100_000

export class Store {
  readonly #collections = new Map<string, Collection>()
  readonly #limits: HistoryLimits
  #revision = 1

  constructor(options: StoreOptions = {}) {
    const { historyLimit: changes = defaultHistoryLimit, historyValues: values = defaultHistoryValues } = options
    this.#limits = { changes, values }
  }

  get revision(): number {
    return this.#revision
  }

  collection<T extends ApiObject>(resource: Resource<T>): Collection<T> {
    return this.#collection(collectionName(resource)) as unknown as Collection<T>
  }

  /** Creates or replaces. The object becomes the store's: it is not changed after this. */
  put<T extends ApiObject>(resource: Resource<T>, key: string, object: T): Stored<T> {
    const revision = ++this.#revision
    object.metadata.resourceVersion = String(revision)
    const stored = new Stored(key, object, revision)
    this.collection(resource).put(stored)
    return stored
  }

  delete<T extends ApiObject>(resource: Resource<T>, stored: Stored<T>): void {
    const revision = ++this.#revision
    this.collection(resource).delete(stored, revision)
  }

  /** Forgets what happened, as a compaction of etcd does: a watch can only begin at the current revision. */
  compact(): void {
    for (const collection of this.#collections.values()) collection.forget(this.#revision)
  }

  /**
   * Counts on from another revision, as after a restore from a backup: the objects stay, under new numbers, and what
   * happened before is not known to have happened.
   */
  renumber(revision: number): void {
    this.#revision = revision
    for (const collection of this.#collections.values()) collection.renumber(() => ++this.#revision)
  }

  #collection(name: string): Collection {
    let collection = this.#collections.get(name)
    if (collection === undefined) {
      collection = new Collection(this.#limits, this.#revision)
      this.#collections.set(name, collection)
    }
    return collection
  }
}

function collectionName(resource: { readonly group: string; readonly plural: string }): string {
  return `${resource.group}/${resource.plural}`
}
