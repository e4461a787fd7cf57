// What a Deployment has to do, from its ReplicaSets: which one is the new one, how far it and the old ones may go now,
// and what to say about it. Pure.

import { createHash } from 'node:crypto'
import { encodeSafe } from '../apiserver/registry/names.ts'
import { sameJson } from '../apiserver/json.ts'
import { isDeleting } from '../apiserver/objects/meta.ts'
import { deploymentStatus } from './deployment-status.ts'
import type { Deployment, DeploymentStatus, ReplicaSet } from '../apiserver/objects/workloads.ts'
import type { PodTemplateSpec } from '../apiserver/objects/pod.ts'

export const hashLabel = 'pod-template-hash'
export const revisionAnnotation = 'deployment.kubernetes.io/revision'

export interface DeploymentPlan {
  /** A new set to make, when there is none of the current template and the strategy allows one. */
  readonly create: { readonly name: string; readonly hash: string; readonly replicas: number } | undefined
  readonly current: ReplicaSet | undefined
  readonly scale: readonly { readonly set: ReplicaSet; readonly to: number }[]
  /** Sets of old templates that are empty and more than the user wants to go back to. */
  readonly remove: readonly ReplicaSet[]
  /** The number of the current template, counted from 1. */
  readonly revision: number
  readonly status: DeploymentStatus
}

/** `sets` are the ones that the deployment owns. */
export function planDeployment(deployment: Deployment, sets: readonly ReplicaSet[], nowMs: number): DeploymentPlan {
  const { spec } = deployment
  const byAge = [...sets].sort((a, b) => ageKey(a).localeCompare(ageKey(b)))
  const current = byAge.find((set) => sameTemplate(set.spec.template, spec.template))
  const old = byAge.filter((set) => set !== current)
  const revision = Math.max(revisionOf(current), 1 + Math.max(0, ...old.map(revisionOf)))
  const limits = rollingLimits(deployment)
  const status = deploymentStatus(deployment, { current, sets: byAge, maxUnavailable: limits.maxUnavailable, nowMs })
  const rest = { current, revision, status, remove: surplusHistory(deployment, old) }
  if (isDeleting(deployment)) return { ...rest, create: undefined, scale: [], remove: [] }
  if (spec.paused === true) return { ...rest, create: undefined, scale: scaleActive(deployment, byAge) }
  const waits = spec.strategy.type === 'Recreate' && old.some(({ status }) => status.replicas > 0)
  if (current === undefined) {
    const scale = spec.strategy.type === 'Recreate' ? toZero(old) : []
    return { ...rest, scale, create: waits ? undefined : newSet(deployment, old, limits) }
  }
  const scale =
    spec.strategy.type === 'Recreate'
      ? [...toZero(old), ...(waits ? [] : changes(current, spec.replicas ?? 1))]
      : roll(deployment, current, { old, limits })
  return { ...rest, scale, create: undefined }
}

function ageKey({ metadata }: ReplicaSet): string {
  return `${metadata.creationTimestamp ?? ''} ${metadata.name}`
}

export function revisionOf(set: ReplicaSet | undefined): number {
  return Number(set?.metadata.annotations?.[revisionAnnotation] ?? 0) || 0
}

function sameTemplate(ofSet: PodTemplateSpec, desired: PodTemplateSpec): boolean {
  const { [hashLabel]: _hash, ...labels } = ofSet.metadata.labels ?? {}
  return sameJson({ ...ofSet, metadata: { ...ofSet.metadata, labels } }, withLabels(desired))
}

function withLabels(template: PodTemplateSpec): PodTemplateSpec {
  return { ...template, metadata: { ...template.metadata, labels: template.metadata.labels ?? {} } }
}

/** The same for the same template, short enough for a name. */
export function templateHash(template: PodTemplateSpec): string {
  const digest = createHash('sha256')
    .update(JSON.stringify(sortKeys(template)))
    .digest()
  return encodeSafe(String(digest.readUInt32BE(0)))
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([key, one]) => [key, sortKeys(one)]))
}

export interface RollingLimits {
  readonly maxSurge: number
  readonly maxUnavailable: number
}

/** Percentages are of the desired replicas: maxSurge is rounded up, maxUnavailable down. Both cannot be zero. */
export function rollingLimits({ spec }: Deployment): RollingLimits {
  const replicas = spec.replicas ?? 1
  const { maxSurge = 0, maxUnavailable = 0 } = spec.strategy.rollingUpdate ?? {}
  const amount = (value: number | string, round: (number: number) => number): number =>
    typeof value === 'number' ? value : round((Number.parseInt(value, 10) * replicas) / 100)
  const surge = amount(maxSurge, Math.ceil)
  const unavailable = Math.min(replicas, amount(maxUnavailable, Math.floor))
  return { maxSurge: surge, maxUnavailable: surge === 0 && unavailable === 0 ? 1 : unavailable }
}

const desired = (set: ReplicaSet): number => set.spec.replicas ?? 0
const total = (sets: readonly ReplicaSet[]): number => sets.reduce((sum, set) => sum + desired(set), 0)
const available = (set: ReplicaSet): number => set.status.availableReplicas ?? 0

function newSet(deployment: Deployment, old: readonly ReplicaSet[], limits: RollingLimits) {
  const { spec, metadata } = deployment
  const hash = templateHash(spec.template)
  const replicas = spec.replicas ?? 1
  const allowed = spec.strategy.type === 'Recreate' ? replicas : Math.max(0, replicas + limits.maxSurge - total(old))
  return { name: `${metadata.name}-${hash}`, hash, replicas: Math.min(replicas, allowed) }
}

function changes(set: ReplicaSet, to: number): { set: ReplicaSet; to: number }[] {
  return desired(set) === to ? [] : [{ set, to }]
}

function toZero(sets: readonly ReplicaSet[]): { set: ReplicaSet; to: number }[] {
  return sets.flatMap((set) => changes(set, 0))
}

/** While it is paused only the number counts, and it goes to the set that has pods already. */
function scaleActive({ spec }: Deployment, byAge: readonly ReplicaSet[]): { set: ReplicaSet; to: number }[] {
  const active = byAge.filter((set) => desired(set) > 0)
  const target = active.at(-1) ?? byAge.at(-1)
  if (target === undefined || active.length > 1) return []
  return changes(target, spec.replicas ?? 1)
}

interface Rolling {
  readonly old: readonly ReplicaSet[]
  readonly limits: RollingLimits
}

/** One step of a rolling update: the new set up as far as the surge allows, the old ones down as far as is safe. */
function roll(
  deployment: Deployment,
  current: ReplicaSet,
  { old, limits }: Rolling,
): { set: ReplicaSet; to: number }[] {
  const replicas = deployment.spec.replicas ?? 1
  if (desired(current) > replicas) return changes(current, replicas)
  const allowed = replicas + limits.maxSurge - total(old) - desired(current)
  if (allowed > 0 && desired(current) < replicas)
    return changes(current, Math.min(replicas, desired(current) + allowed))
  return scaleDownOld(current, old, replicas - limits.maxUnavailable)
}

function scaleDownOld(
  current: ReplicaSet,
  old: readonly ReplicaSet[],
  minAvailable: number,
): { set: ReplicaSet; to: number }[] {
  const unavailableNew = desired(current) - available(current)
  let budget = total(old) + desired(current) - minAvailable - unavailableNew
  if (budget <= 0) return []
  // Pods that do not serve anyway go first: nothing is lost with them, and they hold up the rest.
  const targets = new Map(old.map((set) => [set, desired(set)]))
  for (const set of old) {
    const unhealthy = Math.max(0, Math.min(budget, desired(set) - available(set)))
    targets.set(set, desired(set) - unhealthy)
    budget -= unhealthy
  }
  let spare = [...old, current].reduce((sum, set) => sum + available(set), 0) - minAvailable
  for (const set of old) {
    const drop = Math.max(0, Math.min(spare, targets.get(set)!))
    targets.set(set, targets.get(set)! - drop)
    spare -= drop
  }
  return old.flatMap((set) => changes(set, targets.get(set)!))
}

function surplusHistory({ spec }: Deployment, old: readonly ReplicaSet[]): ReplicaSet[] {
  const idle = old.filter((set) => desired(set) === 0 && set.status.replicas === 0 && !isDeleting(set))
  const surplus = idle.length - (spec.revisionHistoryLimit ?? 10)
  if (surplus <= 0) return []
  return [...idle].sort((a, b) => revisionOf(a) - revisionOf(b)).slice(0, surplus)
}
