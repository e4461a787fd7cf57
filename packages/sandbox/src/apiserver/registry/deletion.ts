// What a delete request does: remove the object, or mark it and let it go later.

import { formatTime, parseTime } from '../time.ts'
import { isTerminal } from '../objects/pod.ts'
import type { ApiObject } from '../objects/meta.ts'
import type { Pod } from '../objects/pod.ts'
import type { Resource } from '../resources/resource.ts'

export const propagationPolicies = ['Orphan', 'Background', 'Foreground'] as const
export type PropagationPolicy = (typeof propagationPolicies)[number]

export interface DeleteOptions {
  readonly gracePeriodSeconds?: number
  readonly propagationPolicy?: PropagationPolicy
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string }
  readonly dryRun?: boolean
}

export type DeletionPlan<T> = { readonly kind: 'remove' } | { readonly kind: 'mark'; readonly object: T }

/** Waits until all dependents are gone. */
export const foregroundFinalizer = 'foregroundDeletion'
/** Waits until no dependent refers to it any more. */
export const orphanFinalizer = 'orphan'

export function planDeletion<T extends ApiObject>(
  resource: Resource<T>,
  current: T,
  options: DeleteOptions & { readonly nowMs: number },
): DeletionPlan<T> {
  const next = structuredClone(current)
  const grace = gracePeriod(resource, current, options.gracePeriodSeconds)
  settleFinalizers(resource, next, options.propagationPolicy)
  const held = (next.metadata.finalizers?.length ?? 0) > 0 || resource.kind === 'Namespace'
  if (grace === 0 && !held) return { kind: 'remove' }
  mark(next, grace, options.nowMs)
  if (resource.kind === 'Namespace') (next as T & { status: { phase?: string } }).status.phase = 'Terminating'
  return { kind: 'mark', object: next }
}

/** Pods that run are given time to finish; everything else goes at once. */
function gracePeriod(resource: Resource, object: ApiObject, asked: number | undefined): number {
  if (resource.kind !== 'Pod') return 0
  const pod = object as Pod
  if (pod.spec.nodeName === undefined || isTerminal(pod)) return 0
  const grace = Math.max(0, asked ?? pod.spec.terminationGracePeriodSeconds ?? 30)
  // Asking again can only shorten what is left.
  return Math.min(grace, pod.metadata.deletionGracePeriodSeconds ?? grace)
}

function mark(object: ApiObject, graceSeconds: number, nowMs: number): void {
  const { metadata } = object
  const due = nowMs + graceSeconds * 1000
  const before = metadata.deletionTimestamp === undefined ? undefined : parseTime(metadata.deletionTimestamp)
  if (before !== undefined && metadata.deletionGracePeriodSeconds === graceSeconds) return
  metadata.deletionTimestamp = formatTime(before === undefined ? due : Math.min(before, due))
  metadata.deletionGracePeriodSeconds = graceSeconds
  if (metadata.generation !== undefined && before === undefined) metadata.generation += 1
}

function settleFinalizers(resource: Resource, object: ApiObject, asked: PropagationPolicy | undefined): void {
  const before = object.metadata.finalizers ?? []
  const policy = asked ?? policyBefore(before) ?? (resource.kind === 'ReplicationController' ? 'Orphan' : 'Background')
  const others = before.filter((name) => name !== foregroundFinalizer && name !== orphanFinalizer)
  if (policy === 'Foreground') others.push(foregroundFinalizer)
  // Only what owns pods or sets of them has dependents worth leaving behind.
  if (policy === 'Orphan' && ownsOthers.has(resource.kind)) others.push(orphanFinalizer)
  if (others.length > 0) object.metadata.finalizers = others
  else delete object.metadata.finalizers
}

const ownsOthers: ReadonlySet<string> = new Set(['ReplicationController', 'ReplicaSet', 'Deployment', 'Service', 'Pod'])

function policyBefore(finalizers: readonly string[]): PropagationPolicy | undefined {
  if (finalizers.includes(foregroundFinalizer)) return 'Foreground'
  return finalizers.includes(orphanFinalizer) ? 'Orphan' : undefined
}
