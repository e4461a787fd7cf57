import { nonNegative } from '../fields/check.ts'
import { ageColumn, containersColumn, imagesColumn, nameColumn } from './columns.ts'
import { setPodSpecDefaults } from './pod-template.ts'
import { defineResource, scaleSubresource, statusSubresource } from './resource.ts'
import { replicaColumns, selectorColumn, validateSameSelector, validateSelected } from './workload.ts'
import type { FieldProblem } from '../fields/problem.ts'
import type { ReplicaSet } from '../objects/workloads.ts'

export const replicaSets = defineResource<ReplicaSet>({
  group: 'apps',
  kind: 'ReplicaSet',
  shortNames: ['rs'],
  categories: ['all'],
  subresources: [scaleSubresource, statusSubresource],
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
