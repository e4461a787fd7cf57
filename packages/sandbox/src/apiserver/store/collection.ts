// The objects of one resource, and what happened to them lately.

import { Stored } from './stored.ts'
import type { ApiObject } from '../objects/meta.ts'

/** One write. Of `before` and `after` one may be missing: created, deleted. */
export interface Change<T extends ApiObject = ApiObject> {
  readonly revision: number
  readonly key: string
  readonly before: Stored<T> | undefined
  readonly after: Stored<T> | undefined
  /** The last state of what was deleted, under the revision of its deletion. */
  readonly last: Stored<T>
}

/** How much is remembered at least. Changes of large objects come to an end before many changes do. */
export interface HistoryLimits {
  readonly changes: number
  /** In all objects of these changes together. */
  readonly values: number
}

/** How much more than that may be remembered, so that not each change has one forgotten. */
const STEP = 1.25

export type ChangeListener<T extends ApiObject = ApiObject> = (change: Change<T>) => void

export class Collection<T extends ApiObject = ApiObject> {
  readonly #objects = new Map<string, Stored<T>>()
  readonly #listeners = new Set<ChangeListener<T>>()
  readonly #limits: HistoryLimits
  #history: Change<T>[] = []
  #valuesInHistory = 0
  /** Changes up to here have been forgotten. */
  #forgottenTo: number
  #sortedKeys: readonly string[] | undefined

  constructor(limits: HistoryLimits, revision: number) {
    this.#limits = limits
    this.#forgottenTo = revision
  }

  get size(): number {
    return this.#objects.size
  }

  get(key: string): Stored<T> | undefined {
    return this.#objects.get(key)
  }

  /** All, by key. */
  list(): Stored<T>[] {
    this.#sortedKeys ??= [...this.#objects.keys()].sort()
    return this.#sortedKeys.map((key) => this.#objects.get(key)!)
  }

  /** All, in no order that means anything: cheaper than list(). */
  values(): IterableIterator<Stored<T>> {
    return this.#objects.values()
  }

  /** All, in no order that means anything. */
  objects(): T[] {
    return Array.from(this.#objects.values(), ({ object }) => object)
  }

  /** Calls for every key that there is, and then for every change. */
  watchKeys(onKey: (key: string) => void): void {
    for (const { key } of this.list()) onKey(key)
    this.listen(({ key }) => onKey(key))
  }

  /** All as of an earlier revision; undefined when that is no longer known. */
  listAt(revision: number): Stored<T>[] | undefined {
    if (revision < this.#forgottenTo) return undefined
    const past = new Map(this.#objects)
    for (let i = this.#history.length - 1; i >= 0; i--) {
      const change = this.#history[i]!
      if (change.revision <= revision) break
      if (change.before === undefined) past.delete(change.key)
      else past.set(change.key, change.before)
    }
    return [...past.keys()].sort().map((key) => past.get(key)!)
  }

  /** What happened after a revision; undefined when not all of that is known any more. */
  changesSince(revision: number): readonly Change<T>[] | undefined {
    if (revision < this.#forgottenTo) return undefined
    let start = this.#history.length
    while (start > 0 && this.#history[start - 1]!.revision > revision) start--
    return this.#history.slice(start)
  }

  /** The oldest revision that a watch can start from. */
  get oldestRevision(): number {
    return this.#forgottenTo
  }

  listen(listener: ChangeListener<T>): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  put(after: Stored<T>): void {
    const before = this.#objects.get(after.key)
    if (before === undefined) this.#sortedKeys = undefined
    before?.forgetEncodings()
    this.#objects.set(after.key, after)
    this.#record({ revision: after.revision, key: after.key, before, after, last: after })
  }

  delete(before: Stored<T>, revision: number): void {
    this.#objects.delete(before.key)
    before.forgetEncodings()
    this.#sortedKeys = undefined
    const metadata = { ...before.object.metadata, resourceVersion: String(revision) }
    const last = new Stored(before.key, { ...before.object, metadata }, revision)
    this.#record({ revision, key: before.key, before, after: undefined, last })
  }

  /** Forgets all changes up to a revision. */
  forget(revision: number): void {
    this.#history = []
    this.#valuesInHistory = 0
    this.#forgottenTo = revision
  }

  /** Gives each object another revision. No listener is called. */
  renumber(next: () => number): void {
    this.forget(0)
    for (const [key, { object }] of this.#objects) {
      const revision = next()
      const metadata = { ...object.metadata, resourceVersion: String(revision) }
      this.#objects.set(key, new Stored(key, { ...object, metadata }, revision))
    }
  }

  #record(change: Change<T>): void {
    this.#history.push(change)
    this.#valuesInHistory += change.last.values
    this.#forgetOldest()
    for (const listener of this.#listeners) listener(change)
  }

  /** In large steps: cutting one off each time would copy the rest each time. */
  #forgetOldest(): void {
    const { changes, values } = this.#limits
    if (this.#history.length <= changes * STEP && this.#valuesInHistory <= values * STEP) return
    let cut = 0
    while (this.#history.length - cut > changes || (this.#valuesInHistory > values && cut < this.#history.length - 1)) {
      const { last, revision } = this.#history[cut++]!
      this.#valuesInHistory -= last.values
      this.#forgottenTo = revision
    }
    this.#history.splice(0, cut)
  }
}
