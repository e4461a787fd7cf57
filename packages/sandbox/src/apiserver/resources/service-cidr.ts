import { parseCidr } from '../../../../../src/lib/ip.ts'
import { validateCanonicalCidr } from '../fields/addresses.ts'
import { immutable } from '../fields/check.ts'
import { invalidValue, requiredValue, tooMany } from '../fields/problem.ts'
import { ageColumn, nameColumn } from './columns.ts'
import { defineResource, statusSubresource } from './resource.ts'
import type { FieldProblem } from '../fields/problem.ts'
import type { ServiceCIDR } from '../objects/small.ts'

export const serviceCidrs = defineResource<ServiceCIDR>({
  group: 'networking.k8s.io',
  kind: 'ServiceCIDR',
  namespaced: false,
  subresources: [statusSubresource],
  columns: [nameColumn, { name: 'CIDRs', cell: ({ spec }) => (spec.cidrs ?? []).join(',') }, ageColumn],
  prepareCreate(cidr) {
    cidr.status = {}
  },
  validate,
  validateUpdate,
})

function validate({ spec }: ServiceCIDR): FieldProblem[] {
  const cidrs = spec.cidrs ?? []
  if (cidrs.length === 0) return [requiredValue('spec.cidrs', 'at least one CIDR required')]
  if (cidrs.length > 2) return [tooMany('spec.cidrs', cidrs.length, 2)]
  const problems = cidrs.flatMap((cidr, i) => validateCanonicalCidr(`spec.cidrs[${i}]`, cidr))
  const families = cidrs.map((cidr) => parseCidr(cidr)?.family)
  return problems.length === 0 && families.length === 2 && families[0] === families[1]
    ? [
        invalidValue(
          'spec.cidrs',
          cidrs,
          'may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64',
        ),
      ]
    : problems
}

/** A second family may be added; nothing else may change. */
function validateUpdate(next: ServiceCIDR, current: ServiceCIDR): FieldProblem[] {
  const [before, after] = [current.spec.cidrs ?? [], next.spec.cidrs ?? []]
  const grew = before.length === 1 && after.length === 2
  if (before.length !== after.length && !grew) return [invalidValue('spec.cidrs', after, 'field is immutable')]
  const changed = before.flatMap((cidr, i) => immutable(`spec.cidrs[${i}]`, after[i], cidr))
  return grew ? [...changed, ...validate(next)] : changed
}
