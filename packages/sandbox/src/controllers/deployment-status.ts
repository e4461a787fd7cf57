// What a Deployment says about itself. Pure.

import { conditionOf } from '../apiserver/objects/pod.ts'
import { formatTime, parseTime } from '../apiserver/time.ts'
import type { Condition } from '../apiserver/objects/meta.ts'
import type { Deployment, DeploymentStatus, ReplicaSet } from '../apiserver/objects/workloads.ts'

export interface DeploymentFacts {
  readonly current: ReplicaSet | undefined
  readonly sets: readonly ReplicaSet[]
  readonly maxUnavailable: number
  readonly nowMs: number
}

export function deploymentStatus(deployment: Deployment, facts: DeploymentFacts): DeploymentStatus {
  const { current, sets, maxUnavailable } = facts
  const sum = (field: 'replicas' | 'readyReplicas' | 'availableReplicas'): number =>
    sets.reduce((total, { status }) => total + (status[field] ?? 0), 0)
  const available = sum('availableReplicas')
  const desired = sets.reduce((total, { spec }) => total + (spec.replicas ?? 0), 0)
  const status: DeploymentStatus = {
    observedGeneration: deployment.metadata.generation ?? 0,
    replicas: sum('replicas'),
    updatedReplicas: current?.status.replicas ?? 0,
    readyReplicas: sum('readyReplicas'),
    availableReplicas: available,
    unavailableReplicas: Math.max(0, desired - available),
  }
  const enough = available >= (deployment.spec.replicas ?? 1) - maxUnavailable
  status.conditions = [
    settle(deployment, enough ? availableCondition : unavailableCondition, facts.nowMs),
    progressCondition(deployment, status, facts),
  ].filter((condition) => condition !== undefined)
  return status
}

type Claim = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>

const availableCondition: Claim = {
  type: 'Available',
  status: 'True',
  reason: 'MinimumReplicasAvailable',
  message: 'Deployment has minimum availability.',
}

const unavailableCondition: Claim = {
  type: 'Available',
  status: 'False',
  reason: 'MinimumReplicasUnavailable',
  message: 'Deployment does not have minimum availability.',
}

/** The condition with its times: it changed now only if its status did. */
function settle({ status }: Deployment, claim: Claim, nowMs: number): Condition {
  const before = conditionOf(status, claim.type)
  if (before?.status === claim.status && before.reason === claim.reason && before.message === claim.message)
    return before
  const now = formatTime(nowMs)
  const since = before?.status === claim.status ? (before.lastTransitionTime ?? now) : now
  return { ...claim, lastUpdateTime: now, lastTransitionTime: since }
}

function progressCondition(
  deployment: Deployment,
  status: DeploymentStatus,
  { current, nowMs }: DeploymentFacts,
): Condition | undefined {
  const before = conditionOf(deployment.status, 'Progressing')
  const claim = (word: 'True' | 'False', reason: string, message: string): Condition =>
    settle(deployment, { type: 'Progressing', status: word, reason, message }, nowMs)
  if (deployment.spec.paused === true) return claim('True', 'DeploymentPaused', 'Deployment is paused')
  if (current === undefined) return before
  const what = `ReplicaSet "${current.metadata.name}"`
  if (isComplete(deployment, status))
    return claim('True', 'NewReplicaSetAvailable', `${what} has successfully progressed.`)
  const finished = before?.reason === 'NewReplicaSetAvailable' && status.replicas === status.updatedReplicas
  if (finished) return before
  if (madeProgress(deployment.status, status) || before === undefined || before.reason !== 'ReplicaSetUpdated') {
    const progressing = claim('True', 'ReplicaSetUpdated', `${what} is progressing.`)
    return { ...progressing, lastUpdateTime: formatTime(nowMs) }
  }
  return isLate(deployment, before, nowMs)
    ? claim('False', 'ProgressDeadlineExceeded', `${what} has timed out progressing.`)
    : before
}

export function isComplete({ spec, metadata }: Deployment, status: DeploymentStatus): boolean {
  const replicas = spec.replicas ?? 1
  return (
    status.updatedReplicas === replicas &&
    status.replicas === replicas &&
    status.availableReplicas === replicas &&
    (status.observedGeneration ?? 0) >= (metadata.generation ?? 0)
  )
}

function madeProgress(before: DeploymentStatus, after: DeploymentStatus): boolean {
  const oldPods = (status: DeploymentStatus): number => (status.replicas ?? 0) - (status.updatedReplicas ?? 0)
  return (
    (after.updatedReplicas ?? 0) > (before.updatedReplicas ?? 0) ||
    oldPods(after) < oldPods(before) ||
    (after.readyReplicas ?? 0) > (before.readyReplicas ?? 0) ||
    (after.availableReplicas ?? 0) > (before.availableReplicas ?? 0)
  )
}

function isLate({ spec }: Deployment, progressing: Condition, nowMs: number): boolean {
  const since = parseTime(progressing.lastUpdateTime ?? '')
  return since !== undefined && nowMs - since > (spec.progressDeadlineSeconds ?? 600) * 1000
}
