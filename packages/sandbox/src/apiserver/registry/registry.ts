// The API without HTTP: objects are created, changed and deleted under the rules of their kind. The HTTP server and the
// controllers both write through here.

import { randomUUID } from 'node:crypto'
import { alreadyExists, badRequest, forbidden, invalid, notFound } from '../api-error.ts'
import { apiVersionOf, hasStatus } from '../resources/resource.ts'
import { decodeObject } from '../schema/decode.ts'
import { formatTime } from '../time.ts'
import { generateName } from './names.ts'
import { isDeleting, objectKey } from '../objects/meta.ts'
import { messageNamed } from '../schema/schema.ts'
import { namespaces } from '../resources/namespace.ts'
import { planDeletion } from './deletion.ts'
import { sameJson } from '../json.ts'
import { Stored } from '../store/stored.ts'
import {
  carryOver,
  checkDeletePreconditions,
  checkPreconditions,
  countGeneration,
  isReleased,
  isUnchanged,
} from './write-rules.ts'
import { validateObjectMeta, validateObjectMetaUpdate } from '../fields/object-meta.ts'
import type { ApiObject, ObjectMeta } from '../objects/meta.ts'
import type { Clock } from '../../../../../src/lib/clock.ts'
import type { Collection } from '../store/collection.ts'
import type { DeleteOptions } from './deletion.ts'
import type { FieldProblem } from '../fields/problem.ts'
import type { JsonObject } from '../json.ts'
import type { Resource } from '../resources/resource.ts'
import type { Store } from '../store/store.ts'
import type { Subject } from '../api-error.ts'
import type { WriteHook } from './write-hook.ts'

export interface WriteOptions {
  /** Say what would happen, and leave everything as it is. */
  readonly dryRun?: boolean
}

/** Where an object is, as its metadata says it. */
export interface ObjectName {
  /** Absent or empty for what lives in none. */
  readonly namespace?: string | undefined
  readonly name: string
}

/** A part of an object that is written on its own; the rest stays. Only the whole and the status are checked. */
export type Part = 'all' | 'status' | 'spec and status' | 'namespace finalizers'

export class Registry {
  readonly store: Store
  readonly #clock: Clock
  readonly #hooks = new Map<string, WriteHook>()

  constructor(store: Store, clock: Clock) {
    this.store = store
    this.#clock = clock
  }

  addHook<T extends ApiObject>(resource: Resource<T>, hook: WriteHook<T>): void {
    this.#hooks.set(resource.message, hook)
  }

  now(): number {
    return this.#clock.now()
  }

  collection<T extends ApiObject>(resource: Resource<T>): Collection<T> {
    return this.store.collection(resource)
  }

  find<T extends ApiObject>(resource: Resource<T>, place: ObjectName): Stored<T> | undefined {
    return this.collection(resource).get(objectKey(place.namespace, place.name))
  }

  get<T extends ApiObject>(resource: Resource<T>, place: ObjectName): Stored<T> {
    const stored = this.find(resource, place)
    if (stored === undefined) throw notFound(subjectOf(resource, place.name))
    return stored
  }

  /** An object from what a client sent: only fields that the kind has, written as the API writes them. */
  decode<T extends ApiObject>(resource: Resource<T>, source: object): T {
    const json = { ...source, kind: resource.kind, apiVersion: apiVersionOf(resource) } as JsonObject
    return decodeObject(messageNamed(resource.message), json).value as unknown as T
  }

  create<T extends ApiObject>(resource: Resource<T>, object: object, options: WriteOptions = {}): Stored<T> {
    const draft = this.decode(resource, object)
    this.#fillNewMeta(resource, draft.metadata)
    resource.setDefaults(draft)
    resource.prepareCreate(draft)
    const { name, namespace = '' } = draft.metadata
    const subject = subjectOf(resource, name ?? '')
    if (resource.namespaced) this.#checkNamespace(resource, draft)
    const key = objectKey(namespace, name)
    const commit = this.#hooks.get(resource.message)?.plan(draft, undefined)
    refuse(subject, [
      ...validateObjectMeta(draft.metadata, { namespaced: resource.namespaced, name: resource.nameRule }),
      ...resource.validate(draft),
    ])
    if (this.collection(resource).get(key) !== undefined) throw alreadyExists(subject)
    const final = this.decode(resource, draft)
    if (options.dryRun === true) return new Stored(key, final, 0)
    const stored = this.store.put(resource, key, final)
    commit?.()
    return stored
  }

  /**
   * Replaces an object, or a part of it. A resourceVersion in the new state must be the current one; without it the last
   * writer wins. What would change nothing is not written.
   */
  update<T extends ApiObject>(
    resource: Resource<T>,
    object: object,
    options: WriteOptions & { readonly part?: Part } = {},
  ): Stored<T> {
    const given = this.decode(resource, object)
    const stored = this.get(resource, given.metadata)
    const subject = subjectOf(resource, given.metadata.name)
    checkPreconditions(subject, given.metadata, stored.object.metadata)
    const part = options.part ?? 'all'
    const next = part === 'all' ? given : this.#withPart(resource, stored.object, { given, part })
    const commit = part === 'all' ? this.#prepareUpdate(resource, next, stored.object) : undefined
    if (part === 'status') {
      resource.setDefaults(next)
      refuse(subject, resource.validateStatus(next, stored.object))
    }
    const final = this.decode(resource, next)
    if (isUnchanged(final, stored.object)) return stored
    if (options.dryRun === true) return new Stored(stored.key, final, 0)
    if (isDeleting(final) && isReleased(final)) {
      this.#remove(resource, stored)
      return new Stored(stored.key, final, this.store.revision)
    }
    const written = this.store.put(resource, stored.key, final)
    commit?.()
    return written
  }

  /**
   * Changes the current state in place: for controllers. Returns undefined when the object is gone. Nothing is written
   * when nothing changed.
   */
  modify<T extends ApiObject>(
    resource: Resource<T>,
    place: ObjectName,
    change: (draft: T) => void,
    part: Part = 'all',
  ): T | undefined {
    const stored = this.find(resource, place)
    if (stored === undefined) return undefined
    const draft = structuredClone(stored.object)
    change(draft)
    if (sameJson(draft, stored.object)) return stored.object
    return this.update(resource, draft, { part }).object
  }

  /** Creates an object unless there is one of the name. */
  ensure<T extends ApiObject>(resource: Resource<T>, place: ObjectName, object: object = { metadata: place }): void {
    if (this.find(resource, place) === undefined) this.create(resource, object)
  }

  /** Deletes an object if there is one. */
  deleteIfThere(resource: Resource, place: ObjectName): void {
    if (this.find(resource, place) !== undefined) this.delete(resource, place)
  }

  /** What is left of the object: undefined when it is gone, its state when it goes later. */
  delete<T extends ApiObject>(resource: Resource<T>, place: ObjectName, options: DeleteOptions = {}): T | undefined {
    const stored = this.get(resource, place)
    const subject = subjectOf(resource, place.name)
    checkDeletePreconditions(subject, options, stored.object.metadata)
    const plan = planDeletion(resource, stored.object, { ...options, nowMs: this.now() })
    if (plan.kind === 'remove') {
      if (options.dryRun !== true) this.#remove(resource, stored)
      return undefined
    }
    const final = this.decode(resource, plan.object)
    if (options.dryRun === true || isUnchanged(final, stored.object)) return final
    this.store.put(resource, stored.key, final)
    return final
  }

  #remove<T extends ApiObject>(resource: Resource<T>, stored: Stored<T>): void {
    this.store.delete(resource, stored)
    this.#hooks.get(resource.message)?.deleted(stored.object)
  }

  #prepareUpdate<T extends ApiObject>(resource: Resource<T>, next: T, current: T): (() => void) | undefined {
    carryOver(resource, next, current)
    resource.setDefaults(next)
    resource.prepareUpdate(next, current)
    const commit = this.#hooks.get(resource.message)?.plan(next, current)
    countGeneration(resource, next, current)
    refuse(subjectOf(resource, current.metadata.name), [
      ...validateObjectMetaUpdate(next.metadata, current.metadata),
      ...resource.validateUpdate(next, current),
    ])
    return commit
  }

  #withPart<T extends ApiObject>(resource: Resource<T>, current: T, change: { given: T; part: Part }): T {
    const next = structuredClone(current) as T & { status?: unknown; spec?: unknown }
    const { status, spec } = change.given as typeof next
    if (change.part === 'status') {
      if (!hasStatus(resource)) throw notFound(subjectOf(resource, current.metadata.name))
      next.status = status
    } else {
      next.spec = spec
      if (change.part === 'spec and status') next.status = status
    }
    return next
  }

  #fillNewMeta(resource: Resource, meta: ObjectMeta): void {
    if (meta.resourceVersion !== undefined)
      throw badRequest('resourceVersion should not be set on objects to be created')
    if ((meta.name ?? '') === '' && meta.generateName !== undefined) meta.name = this.#freeName(resource, meta)
    meta.uid = randomUUID()
    meta.creationTimestamp = formatTime(this.now())
    if (resource.generation !== 'none') meta.generation = 1
    else delete meta.generation
    delete meta.deletionTimestamp
    delete meta.deletionGracePeriodSeconds
    delete meta.managedFields
    delete (meta as { selfLink?: string }).selfLink
  }

  #freeName(resource: Resource, { generateName: prefix = '', namespace }: ObjectMeta): string {
    for (let attempt = 0; attempt < 8; attempt++) {
      const name = generateName(prefix)
      if (this.find(resource, { namespace, name }) === undefined) return name
    }
    throw alreadyExists(subjectOf(resource, prefix))
  }

  #checkNamespace(resource: Resource, object: ApiObject): void {
    const name = object.metadata.namespace ?? ''
    // That it must have one is said with everything else that is wrong.
    if (name === '') return
    const namespace = this.find(namespaces, { name })
    if (namespace === undefined) throw notFound(subjectOf(namespaces, name))
    if (!isDeleting(namespace.object)) return
    const reason = `unable to create new content in namespace ${name} because it is being terminated`
    throw forbidden(subjectOf(resource, object.metadata.name), reason)
  }
}

export function subjectOf(resource: Pick<Resource, 'group' | 'plural' | 'kind'>, name: string): Subject {
  return { group: resource.group, resource: resource.plural, kind: resource.kind, name }
}

function refuse(subject: Subject, problems: readonly FieldProblem[]): void {
  if (problems.length > 0) throw invalid(subject, problems)
}
