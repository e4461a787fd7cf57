// Where there are too many pods to draw each: the healthy ones of a deployment on a node are one box with a count. The sick ones, and the
// selected one, are drawn by themselves.

import { count } from '../../../lib/count.ts'
import type { PodState } from './pod-state.ts'
import type { Target } from './targets.ts'

/** With more, pods are grouped. */
export const MOST_SINGLE = 24
/** More sick ones would be no picture either. */
const MOST_SICK = 60

export interface Grouped {
  /** Groups, and what is drawn by itself. */
  readonly targets: readonly Target[]
  /** The group that a pod is in. */
  readonly groupOf: ReadonlyMap<string, string>
}

const NO_GROUPS: ReadonlyMap<string, string> = new Map()

export function groupTargets(
  targets: readonly Target[],
  stateOf: (target: Target) => PodState,
  selected: string | null,
): Grouped {
  if (targets.length <= MOST_SINGLE) return { targets, groupOf: NO_GROUPS }
  const shown: Target[] = []
  const groups = new Map<string, Target[]>()
  const groupOf = new Map<string, string>()
  let sick = 0
  for (const target of targets) {
    const isAlone = target.id === selected || (stateOf(target).kind === 'bad' && sick++ < MOST_SICK)
    if (isAlone) {
      shown.push(target)
      continue
    }
    const id = groupId(target)
    groupOf.set(target.id, id)
    groups.set(id, [...(groups.get(id) ?? []), target])
  }
  for (const [id, members] of groups) {
    const [first] = members
    const off = members.filter((each) => stateOf(each).kind !== 'good').length
    const noun = first!.pod === null ? 'endpoint' : 'pod'
    const counted = count(members.length, noun)
    shown.push({
      id,
      node: first!.node,
      label: first!.pod === null ? 'endpoints' : (first!.pod.deployment ?? 'others'),
      address: off === 0 ? counted : `${counted}, ${off} not ready`,
      pod: null,
      isGroup: true,
    })
  }
  return { targets: shown, groupOf }
}

/** `node namespace/deployment` */
export function groupId({ node, pod }: Pick<Target, 'node' | 'pod'>): string {
  return pod === null ? `${node} endpoints` : `${node} ${pod.namespace}/${pod.deployment ?? 'others'}`
}
