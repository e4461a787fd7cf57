import { canonicalIp } from '../../../../../src/lib/ip.ts'
import { immutable } from '../fields/check.ts'
import { requiredValue } from '../fields/problem.ts'
import { nameColumn, none } from './columns.ts'
import { defineResource } from './resource.ts'
import type { FieldProblem } from '../fields/problem.ts'
import type { IPAddress } from '../objects/small.ts'

export const ipAddresses = defineResource<IPAddress>({
  group: 'networking.k8s.io',
  kind: 'IPAddress',
  plural: 'ipaddresses',
  shortNames: ['ip'],
  namespaced: false,
  nameRule: (name) => (canonicalIp(name) === name ? undefined : 'must be an IP address in canonical form'),
  columns: [nameColumn, { name: 'ParentRef', cell: formatParent }],
  validate,
  validateUpdate: (next, current) => immutable('spec.parentRef', next.spec.parentRef, current.spec.parentRef),
})

function formatParent({ spec: { parentRef } }: IPAddress): string {
  if (parentRef === undefined) return none
  const { group = '', resource = '', namespace = '', name = '' } = parentRef
  const type = group === '' ? resource : `${resource}.${group}`
  return [type.toLowerCase(), namespace, name].filter((part) => part !== '').join('/')
}

function validate({ spec: { parentRef } }: IPAddress): FieldProblem[] {
  if (parentRef === undefined) return [requiredValue('spec.parentRef')]
  return (['resource', 'name'] as const).flatMap((field) =>
    (parentRef[field] ?? '') === '' ? [requiredValue(`spec.parentRef.${field}`)] : [],
  )
}
