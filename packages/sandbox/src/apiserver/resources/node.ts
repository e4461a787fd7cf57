import { validateCidr } from '../fields/addresses.ts'
import { oneOf } from '../fields/check.ts'
import { forbiddenField } from '../fields/problem.ts'
import { sameJson } from '../json.ts'
import { ageColumn, nameColumn, none, unknown } from './columns.ts'
import { defineResource, statusSubresource } from './resource.ts'
import type { FieldProblem } from '../fields/problem.ts'
import type { Node } from '../objects/node.ts'

const taintEffects: readonly string[] = ['NoExecute', 'NoSchedule', 'PreferNoSchedule']
const rolePrefix = 'node-role.kubernetes.io/'

export const nodes = defineResource<Node>({
  kind: 'Node',
  shortNames: ['no'],
  namespaced: false,
  subresources: [statusSubresource],
  columns: [
    nameColumn,
    { name: 'Status', cell: formatStatus },
    { name: 'Roles', cell: formatRoles },
    ageColumn,
    { name: 'Version', cell: (node) => info(node, 'kubeletVersion', '') },
    addressColumn('Internal-IP', 'InternalIP'),
    addressColumn('External-IP', 'ExternalIP'),
    infoColumn('OS-Image', 'osImage'),
    infoColumn('Kernel-Version', 'kernelVersion'),
    infoColumn('Container-Runtime', 'containerRuntimeVersion'),
  ],
  fields: { 'spec.unschedulable': ({ spec }) => String(spec.unschedulable ?? false) },
  setDefaults({ spec }) {
    if (spec.podCIDR !== undefined) spec.podCIDRs ??= [spec.podCIDR]
    else if (spec.podCIDRs?.[0] !== undefined) spec.podCIDR = spec.podCIDRs[0]
  },
  validate,
  validateUpdate: (next, current) => [
    ...(current.spec.podCIDRs !== undefined && !sameJson(next.spec.podCIDRs, current.spec.podCIDRs)
      ? [forbiddenField('spec.podCIDRs', 'node updates may not change podCIDR except from "" to valid')]
      : []),
    ...validate(next),
  ],
})

function validate({ spec }: Node): FieldProblem[] {
  const taints = spec.taints ?? []
  return [
    ...(spec.podCIDRs ?? []).flatMap((cidr, i) => validateCidr(`spec.podCIDRs[${i}]`, cidr)),
    ...taints.flatMap(({ effect }, i) => oneOf(`spec.taints[${i}].effect`, effect, taintEffects)),
  ]
}

function formatStatus({ spec, status }: Node): string {
  const ready = status.conditions?.find(({ type }) => type === 'Ready')
  const words = [ready === undefined ? 'Unknown' : ready.status === 'True' ? 'Ready' : 'NotReady']
  if (spec.unschedulable === true) words.push('SchedulingDisabled')
  return words.join(',')
}

function formatRoles({ metadata }: Node): string {
  const roles = Object.entries(metadata.labels ?? {}).flatMap(([key, value]) => {
    if (key.startsWith(rolePrefix) && key.length > rolePrefix.length) return [key.slice(rolePrefix.length)]
    return key === 'kubernetes.io/role' && value !== '' ? [value] : []
  })
  return roles.length === 0 ? none : [...new Set(roles)].sort().join(',')
}

function info(node: Node, field: string, absent: string): string {
  return node.status.nodeInfo?.[field] || absent
}

function infoColumn(name: string, field: string) {
  return { name, priority: 1, cell: (node: Node) => info(node, field, unknown) } as const
}

function addressColumn(name: string, type: string) {
  return {
    name,
    priority: 1,
    cell: ({ status }: Node) => status.addresses?.find((address) => address.type === type)?.address ?? none,
  } as const
}
