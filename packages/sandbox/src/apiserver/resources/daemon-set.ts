import { nonNegative, oneOf } from '../fields/check.ts'
import { ageColumn, containersColumn, formatLabels, imagesColumn, nameColumn } from './columns.ts'
import { setPodSpecDefaults } from './pod-template.ts'
import { defineResource, statusSubresource, type Column } from './resource.ts'
import { selectorColumn, validateSameSelector, validateSelected } from './workload.ts'
import type { FieldProblem } from '../fields/problem.ts'
import type { DaemonSet, DaemonSetStatus } from '../objects/workloads.ts'

/** Kept, so that manifests can be tried. The nodes of a sandbox have a proxy already, and no controller makes pods of it. */
export const daemonSets = defineResource<DaemonSet>({
  group: 'apps',
  kind: 'DaemonSet',
  shortNames: ['ds'],
  categories: ['all'],
  subresources: [statusSubresource],
  generation: 'of the spec',
  columns: [
    nameColumn,
    count('Desired', 'desiredNumberScheduled'),
    count('Current', 'currentNumberScheduled'),
    count('Ready', 'numberReady'),
    count('Up-to-date', 'updatedNumberScheduled'),
    count('Available', 'numberAvailable'),
    { name: 'Node Selector', cell: ({ spec }) => formatLabels(spec.template.spec.nodeSelector) },
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

function count(name: string, field: keyof DaemonSetStatus): Column<DaemonSet> {
  return { name, type: 'integer', cell: ({ status }) => status[field] ?? 0 }
}

const strategies = ['RollingUpdate', 'OnDelete'] as const

function validateDaemonSet({ spec }: DaemonSet): FieldProblem[] {
  const { type = '' } = spec.updateStrategy
  return [
    ...nonNegative('spec.minReadySeconds', spec.minReadySeconds),
    ...nonNegative('spec.revisionHistoryLimit', spec.revisionHistoryLimit),
    ...oneOf('spec.updateStrategy.type', type, strategies),
    ...validateSelected(spec),
  ]
}
