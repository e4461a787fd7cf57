// ReplicationController, ReplicaSet and Deployment: a template, a selector and a number.

import { nonNegative, validateLabels } from '../fields/check.ts'
import { nameRules } from '../fields/object-meta.ts'
import { forbiddenField, invalidValue, requiredValue, unsupportedValue } from '../fields/problem.ts'
import { sameJson } from '../json.ts'
import { fromMap, fromObject, matchesLabels } from '../selectors/label-selector.ts'
import { ageColumn, containersColumn, formatLabels, formatSelector, imagesColumn, nameColumn } from './columns.ts'
import { setPodSpecDefaults, validatePodTemplate } from './pod-template.ts'
import { defineResource, scaleSubresource, statusSubresource } from './resource.ts'
import type { Column } from './resource.ts'
import type { ApiObject, LabelSelector } from '../objects/meta.ts'
import type { FieldProblem } from '../fields/problem.ts'
import type { PodTemplateSpec } from '../objects/pod.ts'
import type { Deployment, ReplicaSet, ReplicaStatus, ReplicationController } from '../objects/workloads.ts'

interface Replicated extends ApiObject {
  spec: { replicas?: number }
  status: ReplicaStatus
}

const replicaColumns: readonly Column<Replicated>[] = [
  { name: 'Desired', type: 'integer', description: 'Pods wanted.', cell: ({ spec }) => spec.replicas ?? 0 },
  { name: 'Current', type: 'integer', description: 'Pods there are.', cell: ({ status }) => status.replicas },
  {
    name: 'Ready',
    type: 'integer',
    description: 'Pods that are ready.',
    cell: ({ status }) => status.readyReplicas ?? 0,
  },
]

export const replicationControllers = defineResource<ReplicationController>({
  group: '',
  version: 'v1',
  kind: 'ReplicationController',
  plural: 'replicationcontrollers',
  singular: 'replicationcontroller',
  shortNames: ['rc'],
  categories: ['all'],
  namespaced: true,
  subresources: [scaleSubresource, statusSubresource],
  message: 'core.ReplicationController',
  nameRule: nameRules.subdomain,
  generation: 'of the spec',
  columns: [
    nameColumn,
    ...replicaColumns,
    ageColumn,
    containersColumn,
    imagesColumn,
    {
      name: 'Selector',
      priority: 1,
      description: 'The labels of its pods.',
      cell: ({ spec }) => formatLabels(spec.selector),
    },
  ],
  fields: { 'status.replicas': ({ status }) => String(status.replicas) },
  setDefaults({ metadata, spec }) {
    const labels = spec.template?.metadata.labels
    if (labels !== undefined) {
      spec.selector ??= { ...labels }
      metadata.labels ??= { ...labels }
    }
    spec.replicas ??= 1
    if (spec.template !== undefined) setPodSpecDefaults(spec.template.spec)
  },
  prepareCreate(controller) {
    controller.status = { replicas: 0 }
  },
  validate: validateController,
  validateUpdate: validateController,
})

function validateController({ spec }: ReplicationController): FieldProblem[] {
  const { selector = {}, template } = spec
  const problems = [
    ...nonNegative('spec.replicas', spec.replicas),
    ...nonNegative('spec.minReadySeconds', spec.minReadySeconds),
    ...(Object.keys(selector).length === 0 ? [requiredValue('spec.selector')] : []),
  ]
  if (template === undefined) return [...problems, requiredValue('spec.template')]
  const labels = template.metadata.labels ?? {}
  return [
    ...problems,
    ...(matchesLabels(fromMap(selector), labels)
      ? []
      : [invalidValue('spec.template.metadata.labels', labels, '`selector` does not match template `labels`')]),
    ...validatePodTemplate(template, 'spec.template'),
  ]
}

export const replicaSets = defineResource<ReplicaSet>({
  group: 'apps',
  version: 'v1',
  kind: 'ReplicaSet',
  plural: 'replicasets',
  singular: 'replicaset',
  shortNames: ['rs'],
  categories: ['all'],
  namespaced: true,
  subresources: [scaleSubresource, statusSubresource],
  message: 'apps.ReplicaSet',
  nameRule: nameRules.subdomain,
  generation: 'of the spec',
  columns: [nameColumn, ...replicaColumns, ageColumn, containersColumn, imagesColumn, selectorColumn()],
  fields: { 'status.replicas': ({ status }) => String(status.replicas) },
  setDefaults({ spec }) {
    spec.replicas ??= 1
    setPodSpecDefaults(spec.template.spec)
  },
  prepareCreate(set) {
    set.status = { replicas: 0 }
  },
  validate: validateReplicaSet,
  validateUpdate: (next, current) => [...validateSameSelector(next, current), ...validateReplicaSet(next)],
})

function validateReplicaSet({ spec }: ReplicaSet): FieldProblem[] {
  return [
    ...nonNegative('spec.replicas', spec.replicas),
    ...nonNegative('spec.minReadySeconds', spec.minReadySeconds),
    ...validateSelected(spec),
  ]
}

export const deployments = defineResource<Deployment>({
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  plural: 'deployments',
  singular: 'deployment',
  shortNames: ['deploy'],
  categories: ['all'],
  namespaced: true,
  subresources: [scaleSubresource, statusSubresource],
  message: 'apps.Deployment',
  nameRule: nameRules.subdomain,
  generation: 'of the spec',
  columns: [
    nameColumn,
    {
      name: 'Ready',
      description: 'Pods that are ready, of those wanted.',
      cell: ({ spec, status }) => `${status.readyReplicas ?? 0}/${spec.replicas ?? 0}`,
    },
    {
      name: 'Up-to-date',
      description: 'Pods of the newest template.',
      cell: ({ status }) => status.updatedReplicas ?? 0,
    },
    { name: 'Available', description: 'Pods that serve.', cell: ({ status }) => status.availableReplicas ?? 0 },
    ageColumn,
    containersColumn,
    imagesColumn,
    selectorColumn(),
  ],
  setDefaults({ spec }) {
    spec.replicas ??= 1
    spec.strategy.type ??= 'RollingUpdate'
    if (spec.strategy.type === 'RollingUpdate') {
      const rollingUpdate = (spec.strategy.rollingUpdate ??= {})
      rollingUpdate.maxUnavailable ??= '25%'
      rollingUpdate.maxSurge ??= '25%'
    }
    spec.revisionHistoryLimit ??= 10
    spec.progressDeadlineSeconds ??= 600
    setPodSpecDefaults(spec.template.spec)
  },
  prepareCreate(deployment) {
    deployment.status = {}
  },
  validate: validateDeployment,
  validateUpdate: (next, current) => [...validateSameSelector(next, current), ...validateDeployment(next)],
})

function validateDeployment({ spec }: Deployment): FieldProblem[] {
  return [
    ...nonNegative('spec.replicas', spec.replicas),
    ...nonNegative('spec.minReadySeconds', spec.minReadySeconds),
    ...nonNegative('spec.revisionHistoryLimit', spec.revisionHistoryLimit),
    ...validateStrategy(spec.strategy),
    ...validateSelected(spec),
  ]
}

function validateStrategy({ type = '', rollingUpdate }: Deployment['spec']['strategy']): FieldProblem[] {
  if (type === 'Recreate') {
    return rollingUpdate === undefined
      ? []
      : [forbiddenField('spec.strategy.rollingUpdate', "may not be specified when strategy `type` is 'Recreate'")]
  }
  if (type !== 'RollingUpdate') return [unsupportedValue('spec.strategy.type', type, ['Recreate', 'RollingUpdate'])]
  const { maxUnavailable = 0, maxSurge = 0 } = rollingUpdate ?? {}
  const path = 'spec.strategy.rollingUpdate'
  const problems = [
    ...validateAmount(`${path}.maxUnavailable`, maxUnavailable),
    ...validateAmount(`${path}.maxSurge`, maxSurge),
  ]
  const nothing = (amount: number | string): boolean => Number.parseInt(String(amount), 10) === 0
  return nothing(maxUnavailable) && nothing(maxSurge)
    ? [...problems, invalidValue(`${path}.maxUnavailable`, maxUnavailable, 'may not be 0 when `maxSurge` is 0')]
    : problems
}

function validateAmount(path: string, amount: number | string): FieldProblem[] {
  if (typeof amount === 'number') return nonNegative(path, amount)
  const detail = "must be an integer or a percentage (e.g. '5%')"
  return /^\d+%$/.test(amount) ? [] : [invalidValue(path, amount, detail)]
}

function selectorColumn(): Column<ApiObject & { spec: { selector: LabelSelector } }> {
  return {
    name: 'Selector',
    priority: 1,
    description: 'The labels of its pods.',
    cell: ({ spec }) => formatSelector(spec.selector),
  }
}

const operators = ['In', 'NotIn', 'Exists', 'DoesNotExist'] as const

function validateSelected({
  selector,
  template,
}: {
  selector: LabelSelector
  template: PodTemplateSpec
}): FieldProblem[] {
  const problems = validateSelector(selector)
  const requirements = fromObject(selector)
  if (requirements.length === 0) {
    const detail = 'empty selector is invalid for deployment'
    problems.push(
      selector === undefined ? requiredValue('spec.selector') : invalidValue('spec.selector', selector, detail),
    )
  } else if (!matchesLabels(requirements, template.metadata.labels ?? {})) {
    const labels = template.metadata.labels ?? {}
    problems.push(invalidValue('spec.template.metadata.labels', labels, '`selector` does not match template `labels`'))
  }
  return [...problems, ...validatePodTemplate(template, 'spec.template')]
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

function validateSameSelector(next: ReplicaSet | Deployment, current: ReplicaSet | Deployment): FieldProblem[] {
  return sameJson(next.spec.selector, current.spec.selector)
    ? []
    : [invalidValue('spec.selector', next.spec.selector, 'field is immutable')]
}
