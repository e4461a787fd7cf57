import { nonNegative } from '../fields/check.ts'
import { forbiddenField, invalidValue, unsupportedValue } from '../fields/problem.ts'
import { ageColumn, containersColumn, imagesColumn, nameColumn } from './columns.ts'
import { setPodSpecDefaults } from './pod-template.ts'
import { defineResource, scaleSubresource, statusSubresource } from './resource.ts'
import { selectorColumn, validateSameSelector, validateSelected } from './workload.ts'
import type { FieldProblem } from '../fields/problem.ts'
import type { Deployment } from '../objects/workloads.ts'

export const deployments = defineResource<Deployment>({
  group: 'apps',
  kind: 'Deployment',
  shortNames: ['deploy'],
  categories: ['all'],
  subresources: [scaleSubresource, statusSubresource],
  generation: 'of the spec',
  columns: [
    nameColumn,
    { name: 'Ready', cell: ({ spec, status }) => `${status.readyReplicas ?? 0}/${spec.replicas ?? 0}` },
    { name: 'Up-to-date', cell: ({ status }) => status.updatedReplicas ?? 0 },
    { name: 'Available', cell: ({ status }) => status.availableReplicas ?? 0 },
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
  if (type !== 'RollingUpdate') return [unsupportedValue('spec.strategy', { type }, ['Recreate', 'RollingUpdate'])]
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
