import { nonNegative } from '../fields/check.ts'
import { invalidValue, requiredValue } from '../fields/problem.ts'
import { fromMap, matchesLabels } from '../selectors/label-selector.ts'
import { ageColumn, containersColumn, formatLabels, imagesColumn, nameColumn } from './columns.ts'
import { setPodSpecDefaults, validatePodTemplate } from './pod-template.ts'
import { defineResource, scaleSubresource, statusSubresource } from './resource.ts'
import { replicaColumns } from './workload.ts'
import type { FieldProblem } from '../fields/problem.ts'
import type { ReplicationController } from '../objects/workloads.ts'

export const replicationControllers = defineResource<ReplicationController>({
  kind: 'ReplicationController',
  shortNames: ['rc'],
  categories: ['all'],
  subresources: [scaleSubresource, statusSubresource],
  generation: 'of the spec',
  columns: [
    nameColumn,
    ...replicaColumns,
    ageColumn,
    containersColumn,
    imagesColumn,
    { name: 'Selector', priority: 1, cell: ({ spec }) => formatLabels(spec.selector) },
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
    ...validatePodTemplate(template),
  ]
}
