import { nonNegative } from '../fields/check.ts'
import { nameRules } from '../fields/object-meta.ts'
import { unsupportedValue } from '../fields/problem.ts'
import { ageColumn, containersColumn, formatLabels, imagesColumn, nameColumn } from './columns.ts'
import { setPodSpecDefaults } from './pod-template.ts'
import { defineResource, statusSubresource, type Column } from './resource.ts'
import { selectorColumn, validateSameSelector, validateSelected } from './workload.ts'
import type { FieldProblem } from '../fields/problem.ts'
import type { DaemonSet, DaemonSetStatus } from '../objects/workloads.ts'

/** Kept, so that manifests can be tried. The nodes of a sandbox have a proxy already, and no controller makes pods of it. */
export const daemonSets = defineResource<DaemonSet>({
  group: 'apps',
  version: 'v1',
  kind: 'DaemonSet',
  plural: 'daemonsets',
  singular: 'daemonset',
  shortNames: ['ds'],
  categories: ['all'],
  namespaced: true,
  subresources: [statusSubresource],
  message: 'apps.DaemonSet',
  nameRule: nameRules.subdomain,
  generation: 'of the spec',
  columns: [
    nameColumn,
    count('Desired', 'Nodes that should have a pod.', 'desiredNumberScheduled'),
    count('Current', 'Nodes that have one.', 'currentNumberScheduled'),
    count('Ready', 'Pods that are ready.', 'numberReady'),
    count('Up-to-date', 'Pods of the newest template.', 'updatedNumberScheduled'),
    count('Available', 'Pods that serve.', 'numberAvailable'),
    {
      name: 'Node Selector',
      description: 'The labels of its nodes.',
      cell: ({ spec }) => formatLabels(spec.template.spec.nodeSelector),
    },
    ageColumn,
    containersColumn,
    imagesColumn,
    selectorColumn(),
  ],
  setDefaults({ spec }) {
    spec.updateStrategy.type ??= 'RollingUpdate'
    if (spec.updateStrategy.type === 'RollingUpdate') {
      const rollingUpdate = (spec.updateStrategy.rollingUpdate ??= {})
      rollingUpdate.maxUnavailable ??= 1
      rollingUpdate.maxSurge ??= 0
    }
    spec.revisionHistoryLimit ??= 10
    setPodSpecDefaults(spec.template.spec)
  },
  prepareCreate(set) {
    set.status = { currentNumberScheduled: 0, numberMisscheduled: 0, desiredNumberScheduled: 0, numberReady: 0 }
  },
  validate: validateDaemonSet,
  validateUpdate: (next, current) => [...validateSameSelector(next, current), ...validateDaemonSet(next)],
  warnings: () => ['the sandbox keeps a DaemonSet, and starts no pods for it'],
})

function count(name: string, description: string, field: keyof DaemonSetStatus): Column<DaemonSet> {
  return { name, type: 'integer', description, cell: ({ status }) => status[field] ?? 0 }
}

const strategies = ['RollingUpdate', 'OnDelete'] as const

function validateDaemonSet({ spec }: DaemonSet): FieldProblem[] {
  const { type = '' } = spec.updateStrategy
  return [
    ...nonNegative('spec.minReadySeconds', spec.minReadySeconds),
    ...nonNegative('spec.revisionHistoryLimit', spec.revisionHistoryLimit),
    ...(strategies.some((known) => known === type)
      ? []
      : [unsupportedValue('spec.updateStrategy.type', type, strategies)]),
    ...validateSelected(spec),
  ]
}
