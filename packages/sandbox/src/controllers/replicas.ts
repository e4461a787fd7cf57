// What a ReplicationController or a ReplicaSet has to do, from its pods. Pure.

import { controllerOf, isDeleting } from '../apiserver/objects/meta.ts'
import { conditionOf, isReady, isTerminal } from '../apiserver/objects/pod.ts'
import { matchesLabels } from '../apiserver/selectors/label-selector.ts'
import { parseTime } from '../apiserver/time.ts'
import { pickSurplus } from './pod-ranking.ts'
import type { ApiObject, Labels } from '../apiserver/objects/meta.ts'
import type { Pod } from '../apiserver/objects/pod.ts'
import type { ReplicaStatus } from '../apiserver/objects/workloads.ts'
import type { Requirement } from '../apiserver/selectors/label-selector.ts'

export interface ReplicaOwner {
  readonly object: ApiObject
  readonly replicas: number
  readonly minReadySeconds: number
  readonly selector: readonly Requirement[]
  readonly templateLabels: Labels
}

export interface ReplicaPlan {
  readonly create: number
  readonly remove: readonly Pod[]
  readonly adopt: readonly Pod[]
  readonly release: readonly Pod[]
  readonly status: ReplicaStatus
  /** When a pod becomes available by mere waiting. */
  readonly lookAgainMs: number | undefined
}

/** `pods` are those of the owner's namespace. */
export function planReplicas(owner: ReplicaOwner, pods: readonly Pod[], nowMs: number): ReplicaPlan {
  const { uid } = owner.object.metadata
  const picked = pods.filter(({ metadata }) => matchesLabels(owner.selector, metadata.labels))
  const isOwn = (pod: Pod): boolean => controllerOf(pod)?.uid === uid
  const goingAway = isDeleting(owner.object)
  const adopt = goingAway
    ? []
    : picked.filter((pod) => controllerOf(pod) === undefined && !isDeleting(pod) && !isTerminal(pod))
  const release = pods.filter((pod) => isOwn(pod) && !matchesLabels(owner.selector, pod.metadata.labels))
  const active = [...picked.filter(isOwn), ...adopt].filter((pod) => !isDeleting(pod) && !isTerminal(pod))
  const missing = goingAway ? 0 : owner.replicas - active.length
  return {
    create: Math.max(0, missing),
    remove: missing < 0 ? pickSurplus(active, -missing) : [],
    adopt,
    release: goingAway ? [] : release,
    status: statusOf(owner, active, nowMs),
    lookAgainMs: nextAvailability(owner, active, nowMs),
  }
}

function statusOf(owner: ReplicaOwner, active: readonly Pod[], nowMs: number): ReplicaStatus {
  const labels = Object.entries(owner.templateLabels)
  const count = (test: (pod: Pod) => boolean): number => active.filter(test).length
  return {
    replicas: active.length,
    fullyLabeledReplicas: count(({ metadata }) => labels.every(([key, value]) => metadata.labels?.[key] === value)),
    readyReplicas: count(isReady),
    availableReplicas: count((pod) => isReady(pod) && readyForMs(pod, nowMs) >= owner.minReadySeconds * 1000),
    observedGeneration: owner.object.metadata.generation ?? 0,
  }
}

function readyForMs(pod: Pod, nowMs: number): number {
  const since = conditionOf(pod.status, 'Ready')?.lastTransitionTime
  return nowMs - (parseTime(since ?? '') ?? nowMs)
}

function nextAvailability(owner: ReplicaOwner, active: readonly Pod[], nowMs: number): number | undefined {
  const waits = active
    .filter(isReady)
    .map((pod) => owner.minReadySeconds * 1000 - readyForMs(pod, nowMs))
    .filter((waitMs) => waitMs > 0)
  return waits.length === 0 ? undefined : Math.min(...waits)
}
