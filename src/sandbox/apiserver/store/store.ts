// The state of the cluster, in memory: every object of every resource, and one counter that numbers the writes.

import { Collection } from './collection.ts'
import { Stored } from './stored.ts'
import type { ApiObject } from '../objects/meta.ts'
import type { Resource } from '../resources/resource.ts'

/** Where writes are kept for the next start. */
export interface Journal {
  append(record: JournalRecord): void
  /** Resolves when everything appended so far would survive a crash. */
  flushed(): Promise<void>
  close(): Promise<void>
}

export interface JournalRecord {
  readonly revision: number
  /** `group/plural` */
  readonly collection: string
  readonly key: string
  /** Null: deleted. */
  readonly object: ApiObject | null
}

export interface StoreOptions {
  /** How many changes of each resource are remembered, at least. */
  readonly historyLimit?: number
}

const defaultHistoryLimit = 8192

export class Store {
  readonly #collections = new Map<string, Collection>()
  readonly #historyLimit: number
  #revision = 1
  #journal: Journal | undefined

  constructor(options: StoreOptions = {}) {
    this.#historyLimit = options.historyLimit ?? defaultHistoryLimit
  }

  /** The number of the last write. */
  get revision(): number {
    return this.#revision
  }

  collection<T extends ApiObject>(resource: Resource<T>): Collection<T> {
    return this.#collection(collectionName(resource)) as unknown as Collection<T>
  }

  /** Creates or replaces. The object becomes the store's: nobody changes it after this. */
  put<T extends ApiObject>(resource: Resource<T>, key: string, object: T): Stored<T> {
    const revision = ++this.#revision
    object.metadata.resourceVersion = String(revision)
    const stored = new Stored(key, object, revision)
    // Into the journal first: a listener may write in turn, and the journal keeps the order of revisions.
    this.#journal?.append({ revision, collection: collectionName(resource), key, object })
    this.collection(resource).put(stored)
    return stored
  }

  delete<T extends ApiObject>(resource: Resource<T>, stored: Stored<T>): void {
    const revision = ++this.#revision
    this.#journal?.append({ revision, collection: collectionName(resource), key: stored.key, object: null })
    this.collection(resource).delete(stored, revision)
  }

  /** Resolves when all writes so far are as safe as they get. */
  async durable(): Promise<void> {
    await this.#journal?.flushed()
  }

  /** Puts back what a journal has kept. Only for a store that nobody uses yet. */
  restore(revision: number, records: Iterable<JournalRecord>): void {
    this.#revision = Math.max(this.#revision, revision)
    for (const record of records) {
      if (record.object === null) continue
      const stored = new Stored(record.key, record.object, record.revision)
      this.#collection(record.collection).put(stored)
    }
    for (const collection of this.#collections.values()) collection.forget(this.#revision)
  }

  /** Writes go here from now on. */
  keepIn(journal: Journal): void {
    this.#journal = journal
  }

  /** Everything there is, as a journal would keep it. */
  *records(): Iterable<JournalRecord> {
    for (const [collection, { values }] of this.#entries()) {
      for (const { key, object, revision } of values) yield { revision, collection, key, object }
    }
  }

  *#entries(): Iterable<[string, { values: Iterable<Stored> }]> {
    for (const [name, collection] of this.#collections) yield [name, { values: collection.values() }]
  }

  #collection(name: string): Collection {
    let collection = this.#collections.get(name)
    if (collection === undefined) {
      collection = new Collection(this.#historyLimit, this.#revision)
      this.#collections.set(name, collection)
    }
    return collection
  }
}

function collectionName(resource: { readonly group: string; readonly plural: string }): string {
  return `${resource.group}/${resource.plural}`
}
