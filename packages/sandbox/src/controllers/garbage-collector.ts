// What goes when its owner goes: background and foreground deletion, and orphans.

import { foregroundFinalizer, orphanFinalizer } from '../apiserver/registry/deletion.ts'
import { isDeleting } from '../apiserver/objects/meta.ts'
import { resources } from '../apiserver/resources/table.ts'
import type { ApiObject, OwnerReference } from '../apiserver/objects/meta.ts'
import type { ControllerContext } from './controller.ts'
import type { Resource } from '../apiserver/resources/resource.ts'
import type { WorkQueue } from './control-loop.ts'

interface Item {
  readonly resource: Resource
  readonly object: ApiObject
}

export function startGarbageCollector(context: ControllerContext): void {
  new GarbageCollector(context).start()
}

class GarbageCollector {
  readonly #context: ControllerContext
  readonly #items = new Map<string, Item>()
  /** By the uid of the owner: the uids of what it owns. */
  readonly #dependents = new Map<string, Set<string>>()
  readonly #queue: WorkQueue

  constructor(context: ControllerContext) {
    this.#context = context
    this.#queue = context.loop.queue('garbagecollector', (uid) => this.#sync(uid))
  }

  start(): void {
    for (const resource of resources.filter(({ storedAs }) => storedAs === undefined)) {
      const collection = this.#context.registry.collection(resource)
      for (const { object } of collection.list()) this.#add(resource, object)
      collection.listen(({ before, after }) => {
        if (before !== undefined && before.object.metadata.uid !== after?.object.metadata.uid)
          this.#remove(before.object)
        if (after !== undefined) this.#add(resource, after.object)
      })
    }
  }

  #add(resource: Resource, object: ApiObject): void {
    const { uid = '', ownerReferences = [], finalizers = [] } = object.metadata
    const before = this.#items.get(uid)?.object.metadata.ownerReferences ?? []
    this.#items.set(uid, { resource, object })
    for (const { uid: owner } of before) {
      if (!ownerReferences.some((one) => one.uid === owner)) this.#dependents.get(owner)?.delete(uid)
    }
    for (const { uid: owner } of ownerReferences) {
      const known = this.#dependents.get(owner) ?? new Set()
      known.add(uid)
      this.#dependents.set(owner, known)
    }
    const waits = finalizers.includes(foregroundFinalizer) || finalizers.includes(orphanFinalizer)
    if (ownerReferences.length > 0 || (isDeleting(object) && waits)) this.#queue.add(uid)
  }

  #remove({ metadata: { uid = '', ownerReferences = [] } }: ApiObject): void {
    this.#items.delete(uid)
    for (const owner of ownerReferences) {
      this.#dependents.get(owner.uid)?.delete(uid)
      if (this.#items.get(owner.uid)?.object.metadata.deletionTimestamp !== undefined) this.#queue.add(owner.uid)
    }
    for (const dependent of this.#dependents.get(uid) ?? []) this.#queue.add(dependent)
    this.#dependents.delete(uid)
  }

  #sync(uid: string): void {
    const item = this.#items.get(uid)
    if (item === undefined) return
    if (isDeleting(item.object)) this.#finishDeletion(uid, item)
    else this.#deleteIfOrphaned(item)
  }

  /** Deletes what has owners of which none is left. */
  #deleteIfOrphaned({ resource, object }: Item): void {
    const { ownerReferences = [], uid = '' } = object.metadata
    const left = ownerReferences.filter(({ uid: owner }) => this.#items.has(owner))
    const goingInForeground = left.filter((owner) => this.#isInForeground(owner))
    if (ownerReferences.length === 0) return
    if (left.length === 0 || goingInForeground.length === left.length) {
      // A client that waits for this object waits for what it owns, too.
      const waits = goingInForeground.length > 0 && (this.#dependents.get(uid)?.size ?? 0) > 0
      const propagationPolicy = waits ? 'Foreground' : 'Background'
      this.#context.registry.delete(resource, object.metadata, { propagationPolicy, preconditions: { uid } })
      return
    }
    if (left.length === ownerReferences.length) return
    this.#context.registry.modify(resource, object.metadata, ({ metadata }) => (metadata.ownerReferences = left))
  }

  #isInForeground({ uid }: OwnerReference): boolean {
    const owner = this.#items.get(uid)?.object
    return owner !== undefined && isDeleting(owner) && (owner.metadata.finalizers ?? []).includes(foregroundFinalizer)
  }

  #finishDeletion(uid: string, item: Item): void {
    const { finalizers = [] } = item.object.metadata
    const dependents = [...(this.#dependents.get(uid) ?? [])].flatMap((one) => this.#items.get(one) ?? [])
    if (finalizers.includes(orphanFinalizer)) {
      for (const dependent of dependents) this.#release(dependent, uid)
      this.#dropFinalizer(item, orphanFinalizer)
    } else if (finalizers.includes(foregroundFinalizer)) {
      const blocking = dependents.filter(({ object: { metadata } }) =>
        metadata.ownerReferences?.some((owner) => owner.uid === uid && owner.blockOwnerDeletion === true),
      )
      for (const dependent of dependents) if (!isDeleting(dependent.object)) this.#deleteIfOrphaned(dependent)
      if (blocking.length === 0) this.#dropFinalizer(item, foregroundFinalizer)
    }
  }

  #release({ resource, object }: Item, owner: string): void {
    this.#context.registry.modify(resource, object.metadata, ({ metadata }) => {
      metadata.ownerReferences = (metadata.ownerReferences ?? []).filter(({ uid }) => uid !== owner)
    })
  }

  #dropFinalizer({ resource, object }: Item, finalizer: string): void {
    this.#context.registry.modify(resource, object.metadata, ({ metadata }) => {
      metadata.finalizers = (metadata.finalizers ?? []).filter((name) => name !== finalizer)
    })
  }
}
