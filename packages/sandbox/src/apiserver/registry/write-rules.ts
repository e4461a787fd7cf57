// What a write must respect, whatever the kind: preconditions, fields that only the server sets, generations. Nothing here
// writes.

import { ApiError, conflict, staleVersion } from '../api-error.ts'
import { hasStatus } from '../resources/resource.ts'
import { sameJson } from '../json.ts'
import type { ApiObject, ObjectMeta } from '../objects/meta.ts'
import type { DeleteOptions } from './deletion.ts'
import type { Resource } from '../resources/resource.ts'
import type { Subject } from '../api-error.ts'

export function checkPreconditions(subject: Subject, given: ObjectMeta, current: ObjectMeta): void {
  if (given.uid !== undefined && given.uid !== current.uid) {
    const reason = `Precondition failed: UID in precondition: ${given.uid}, UID in object meta: ${current.uid}`
    throw conflict(subject, reason)
  }
  if (given.resourceVersion !== undefined && given.resourceVersion !== current.resourceVersion) {
    throw conflict(subject, staleVersion)
  }
}

export function checkDeletePreconditions(
  subject: Subject,
  { preconditions }: DeleteOptions,
  current: ObjectMeta,
): void {
  if (preconditions?.uid !== undefined && preconditions.uid !== current.uid) {
    throw new ApiError(
      409,
      'Conflict',
      `Precondition failed: UID in precondition: ${preconditions.uid}, UID in object meta: ${current.uid}`,
      { name: subject.name, kind: subject.resource },
    )
  }
  if (preconditions?.resourceVersion !== undefined && preconditions.resourceVersion !== current.resourceVersion) {
    throw conflict(subject, staleVersion)
  }
}

/** What an update cannot change is taken from the current state, whatever the client sent. */
export function carryOver(resource: Resource, next: ApiObject, current: ApiObject): void {
  const kept = ['uid', 'creationTimestamp', 'deletionTimestamp', 'deletionGracePeriodSeconds', 'generation'] as const
  for (const field of kept) {
    delete next.metadata[field]
    if (current.metadata[field] !== undefined) Object.assign(next.metadata, { [field]: current.metadata[field] })
  }
  delete next.metadata.managedFields
  delete (next.metadata as { selfLink?: string }).selfLink
  if (hasStatus(resource)) {
    Object.assign(next, { status: structuredClone((current as { status?: unknown }).status) })
  }
}

export function countGeneration(resource: Resource, next: ApiObject, current: ApiObject): void {
  if (resource.generation === 'none') return
  const changed =
    resource.generation === 'of the spec'
      ? !sameJson((next as { spec?: unknown }).spec, (current as { spec?: unknown }).spec)
      : !sameJson({ ...next, metadata: next.metadata.labels }, { ...current, metadata: current.metadata.labels })
  if (changed) next.metadata.generation = (current.metadata.generation ?? 0) + 1
}

export function isUnchanged(next: ApiObject, current: ApiObject): boolean {
  next.metadata.resourceVersion ??= current.metadata.resourceVersion ?? ''
  return sameJson(next, current)
}

/** Whether nothing holds back an object that is being deleted. */
export function isReleased(object: ApiObject): boolean {
  const { finalizers, deletionGracePeriodSeconds } = object.metadata
  const namespaceFinalizers =
    object.kind === 'Namespace' ? (object as { spec?: { finalizers?: string[] } }).spec?.finalizers : []
  return (
    (finalizers ?? []).length === 0 &&
    (namespaceFinalizers ?? []).length === 0 &&
    (deletionGracePeriodSeconds ?? 0) === 0
  )
}
