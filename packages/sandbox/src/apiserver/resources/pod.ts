import { forbiddenField } from '../fields/problem.ts'
import { unknownAnnotationValues } from '../objects/pod-annotations.ts'
import { sameJson } from '../json.ts'
import { ageColumn, nameColumn, none } from './columns.ts'
import { formatReady, formatReason, formatRestarts } from './pod-columns.ts'
import { setPodSpecDefaults, validatePodSpec } from './pod-template.ts'
import { defineResource, statusSubresource } from './resource.ts'
import type { Pod, PodSpec } from '../objects/pod.ts'
import type { Subresource } from './resource.ts'

/** The API server alone cannot do these. It announces them all the same, so that its error says why not. */
const streams: readonly Subresource[] = [
  { name: 'attach', verbs: ['create', 'get'], as: { group: '', version: 'v1', kind: 'PodAttachOptions' } },
  { name: 'exec', verbs: ['create', 'get'], as: { group: '', version: 'v1', kind: 'PodExecOptions' } },
  { name: 'log', verbs: ['get'] },
  { name: 'portforward', verbs: ['create', 'get'], as: { group: '', version: 'v1', kind: 'PodPortForwardOptions' } },
]

export const pods = defineResource<Pod>({
  kind: 'Pod',
  shortNames: ['po'],
  categories: ['all'],
  subresources: [
    { name: 'eviction', verbs: ['create'], as: { group: 'policy', version: 'v1', kind: 'Eviction' } },
    ...streams,
    statusSubresource,
  ],
  generation: 'of the spec',
  columns: [
    nameColumn,
    { name: 'Ready', cell: formatReady },
    { name: 'Status', cell: formatReason },
    { name: 'Restarts', cell: formatRestarts },
    ageColumn,
    { name: 'IP', priority: 1, cell: ({ status }) => status.podIPs?.[0]?.ip ?? none },
    { name: 'Node', priority: 1, cell: ({ spec }) => spec.nodeName ?? none },
    { name: 'Nominated Node', priority: 1, cell: ({ status }) => status.nominatedNodeName ?? none },
    { name: 'Readiness Gates', priority: 1, cell: formatGates },
  ],
  fields: {
    'spec.nodeName': ({ spec }) => spec.nodeName ?? '',
    'spec.restartPolicy': ({ spec }) => spec.restartPolicy ?? '',
    'spec.schedulerName': ({ spec }) => spec.schedulerName ?? '',
    'spec.serviceAccountName': ({ spec }) => spec.serviceAccountName ?? '',
    'spec.hostNetwork': ({ spec }) => String(spec.hostNetwork ?? false),
    'status.phase': ({ status }) => status.phase ?? '',
    'status.podIP': ({ status }) => status.podIP ?? '',
    'status.nominatedNodeName': ({ status }) => status.nominatedNodeName ?? '',
  },
  setDefaults({ spec }) {
    setPodSpecDefaults(spec)
    spec.enableServiceLinks ??= true
  },
  prepareCreate(pod) {
    addTolerations(pod.spec)
    pod.status = { phase: 'Pending', qosClass: qosClass(pod.spec) }
  },
  warnings: unknownAnnotationValues,
  validate: ({ spec }) => validatePodSpec(spec, 'spec'),
  validateUpdate: (next, current) => [
    ...(sameJson(withoutMutable(next.spec), withoutMutable(current.spec))
      ? []
      : [forbiddenField('spec', `pod updates may not change fields other than ${mutable}`)]),
    ...validatePodSpec(next.spec, 'spec'),
  ],
})

/** Pods stay for five minutes on a node that stopped answering. */
function addTolerations(spec: PodSpec): void {
  for (const key of ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable']) {
    const tolerations = (spec.tolerations ??= [])
    if (tolerations.some((toleration) => toleration.key === key || toleration.key === undefined)) continue
    tolerations.push({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 } as never)
  }
}

type Amounts = Record<string, string> | undefined

/** Guaranteed when every container has limits and asks for no less, BestEffort when none asks for anything. */
function qosClass(spec: PodSpec): string {
  const all = (spec.containers ?? []).map(({ resources }) => resources as { limits?: Amounts; requests?: Amounts })
  if (all.every((one) => one?.limits === undefined && one?.requests === undefined)) return 'BestEffort'
  const guaranteed = all.every(
    (one) =>
      ['cpu', 'memory'].every((name) => one?.limits?.[name] !== undefined) &&
      (one?.requests === undefined || sameJson(one.requests, one.limits)),
  )
  return guaranteed ? 'Guaranteed' : 'Burstable'
}

const mutable =
  '`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)'

function withoutMutable(spec: PodSpec): unknown {
  const { tolerations: _tolerations, nodeName: _nodeName, ...rest } = spec
  const images = (list: PodSpec['containers'] = []) => list.map(({ image: _image, ...container }) => container)
  return {
    ...rest,
    activeDeadlineSeconds: undefined,
    containers: images(spec.containers),
    initContainers: images(spec.initContainers),
  }
}

function formatGates({ spec, status }: Pod): string {
  const gates = spec.readinessGates ?? []
  if (gates.length === 0) return none
  const open = gates.filter(({ conditionType }) =>
    status.conditions?.some(({ type, status }) => type === conditionType && status === 'True'),
  )
  return `${open.length}/${gates.length}`
}
