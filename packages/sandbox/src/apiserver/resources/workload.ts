// What ReplicationController, ReplicaSet and Deployment share: a template, a selector and a number.

import { immutable, validateLabels } from '../fields/check.ts'
import { forbiddenField, invalidValue, requiredValue } from '../fields/problem.ts'
import { fromObject, matchesLabels } from '../selectors/label-selector.ts'
import { formatSelector } from './columns.ts'
import { validatePodTemplate } from './pod-template.ts'
import type { Column } from './resource.ts'
import type { ApiObject, Labels, LabelSelector } from '../objects/meta.ts'
import type { FieldProblem } from '../fields/problem.ts'
import type { PodTemplateSpec } from '../objects/pod.ts'
import type { DaemonSet, Deployment, ReplicaSet, ReplicaStatus } from '../objects/workloads.ts'

interface Replicated extends ApiObject {
  spec: { replicas?: number }
  status: ReplicaStatus
}

export const replicaColumns: readonly Column<Replicated>[] = [
  { name: 'Desired', type: 'integer', cell: ({ spec }) => spec.replicas ?? 0 },
  { name: 'Current', type: 'integer', cell: ({ status }) => status.replicas },
  { name: 'Ready', type: 'integer', cell: ({ status }) => status.readyReplicas ?? 0 },
]

export function selectorColumn(): Column<ApiObject & { spec: { selector: LabelSelector } }> {
  return { name: 'Selector', priority: 1, cell: ({ spec }) => formatSelector(spec.selector) }
}

const operators = ['In', 'NotIn', 'Exists', 'DoesNotExist'] as const

export function validateSelected({
  selector,
  template,
}: {
  selector?: LabelSelector
  template: PodTemplateSpec
}): FieldProblem[] {
  return [...validateMatch(selector, template.metadata.labels ?? {}), ...validatePodTemplate(template)]
}

function validateMatch(selector: LabelSelector | undefined, labels: Labels): FieldProblem[] {
  if (selector === undefined) return [requiredValue('spec.selector')]
  const requirements = fromObject(selector)
  const problems = validateSelector(selector)
  if (requirements.length === 0) {
    return [...problems, invalidValue('spec.selector', selector, 'empty selector is invalid for deployment')]
  }
  if (matchesLabels(requirements, labels)) return problems
  const detail = '`selector` does not match template `labels`'
  return [...problems, invalidValue('spec.template.metadata.labels', labels, detail)]
}

function validateSelector(selector: LabelSelector): FieldProblem[] {
  return [
    ...validateLabels('spec.selector.matchLabels', selector.matchLabels),
    ...(selector.matchExpressions ?? []).flatMap(({ operator, values = [] }, i) => {
      const path = `spec.selector.matchExpressions[${i}]`
      if (!operators.some((known) => known === operator)) {
        return [invalidValue(`${path}.operator`, operator, 'not a valid selector operator')]
      }
      const wantsValues = operator === 'In' || operator === 'NotIn'
      if (wantsValues && values.length === 0) {
        return [requiredValue(`${path}.values`, "must be specified when `operator` is 'In' or 'NotIn'")]
      }
      return !wantsValues && values.length > 0
        ? [forbiddenField(`${path}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")]
        : []
    }),
  ]
}

type Selecting = DaemonSet | Deployment | ReplicaSet

export function validateSameSelector(next: Selecting, current: Selecting): FieldProblem[] {
  return immutable('spec.selector', next.spec.selector, current.spec.selector)
}
