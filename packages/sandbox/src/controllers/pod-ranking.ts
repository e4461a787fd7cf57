// Which pods go first when there are too many.

import { conditionOf, isReady } from '../apiserver/objects/pod.ts'
import type { Pod } from '../apiserver/objects/pod.ts'

const phaseRank: Readonly<Record<string, number>> = { Pending: 0, Unknown: 1, Running: 2 }

/**
 * The `count` pods that are missed least: unassigned before assigned, pending before running, not ready before ready,
 * then from the node that has most of them, then the youngest.
 */
export function pickSurplus(pods: readonly Pod[], count: number): Pod[] {
  const perNode = new Map<string, number>()
  for (const { spec } of pods) perNode.set(spec.nodeName ?? '', (perNode.get(spec.nodeName ?? '') ?? 0) + 1)
  const rank = (pod: Pod): (number | string)[] => [
    pod.spec.nodeName === undefined ? 0 : 1,
    phaseRank[pod.status.phase ?? 'Pending'] ?? 1,
    isReady(pod) ? 1 : 0,
    deletionCost(pod),
    -(perNode.get(pod.spec.nodeName ?? '') ?? 0),
    descending(conditionOf(pod.status, 'Ready')?.lastTransitionTime ?? ''),
    descending(pod.metadata.creationTimestamp ?? ''),
    pod.metadata.name,
  ]
  return [...pods].sort((a, b) => compareRanks(rank(a), rank(b))).slice(0, count)
}

/** Pods can say how much they would be missed. */
function deletionCost({ metadata }: Pod): number {
  return Number(metadata.annotations?.['controller.kubernetes.io/pod-deletion-cost'] ?? 0) || 0
}

/** A time as a number that is smaller the later it is. */
function descending(time: string): number {
  return -(Date.parse(time) || 0)
}

function compareRanks(a: readonly (number | string)[], b: readonly (number | string)[]): number {
  for (const [i, left] of a.entries()) {
    const right = b[i]!
    if (left !== right) return left < right ? -1 : 1
  }
  return 0
}
