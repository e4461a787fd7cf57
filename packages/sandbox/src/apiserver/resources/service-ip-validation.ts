// clusterIP, clusterIPs, ipFamilies and ipFamilyPolicy: four fields that must agree.

import { ipFamily } from '../../../../../src/lib/ip.ts'
import { validateIp } from '../fields/addresses.ts'
import { checkUnique, oneOf } from '../fields/check.ts'
import { invalidValue, requiredValue } from '../fields/problem.ts'
import { ipFamilies, isHeadless } from '../objects/service.ts'
import type { FieldProblem } from '../fields/problem.ts'
import type { Service, ServiceSpec } from '../objects/service.ts'

const policies = ['PreferDualStack', 'RequireDualStack', 'SingleStack'] as const

export function validateClusterIps(service: Service): FieldProblem[] {
  const { spec } = service
  if (spec.type === 'ExternalName') return []
  const bad = validateAddresses(spec.clusterIPs ?? [])
  const problems = [...validateAgreement(spec), ...validateFamilies(spec), ...bad]
  // The checks below would only repeat what is wrong with an address that is none.
  return bad.length > 0 ? problems : [...problems, ...validateStacks(service)]
}

function validateAgreement({ clusterIP = '', clusterIPs = [] }: ServiceSpec): FieldProblem[] {
  const path = 'spec.clusterIPs'
  if (clusterIP === '') {
    return clusterIPs.length === 0
      ? []
      : [invalidValue(path, clusterIPs, 'must be empty when `clusterIP` is not specified')]
  }
  if (clusterIPs.length === 0) return [requiredValue(path)]
  return clusterIPs[0] === clusterIP ? [] : [invalidValue(path, clusterIPs, 'first value must match `clusterIP`')]
}

function validateFamilies({ ipFamilies: families = [], ipFamilyPolicy }: ServiceSpec): FieldProblem[] {
  const problems = families.flatMap((family, i) => {
    const path = `spec.ipFamilies[${i}]`
    return [...oneOf(path, family, ipFamilies), ...checkUnique(path, families, i)]
  })
  return [...problems, ...(ipFamilyPolicy === undefined ? [] : oneOf('spec.ipFamilyPolicy', ipFamilyPolicy, policies))]
}

function validateAddresses(clusterIPs: readonly string[]): FieldProblem[] {
  return clusterIPs.flatMap((ip, i) => {
    if (i > 0 || ip !== 'None') return validateIp(`spec.clusterIPs[${i}]`, ip)
    return clusterIPs.length === 1
      ? []
      : [invalidValue('spec.clusterIPs', clusterIPs, "'None' must be the first and only value")]
  })
}

function validateStacks(service: Service): FieldProblem[] {
  const { clusterIPs = [], ipFamilies: families = [] } = service.spec
  const problems: FieldProblem[] = []
  if (clusterIPs.length > 2) {
    problems.push(invalidValue('spec.clusterIPs', clusterIPs, 'may only hold up to 2 values'))
  }
  if (clusterIPs.length > 1 && new Set(clusterIPs.map(ipFamily)).size < clusterIPs.length) {
    const detail = 'may specify no more than one IP for each IP family'
    problems.push(invalidValue('spec.clusterIPs', clusterIPs, detail))
  }
  if (isHeadless(service)) return problems
  for (const [i, ip] of clusterIPs.entries()) {
    const expected = families[i]
    if (expected === undefined || `IPv${ipFamily(ip)}` === expected) continue
    const detail = `expected an ${expected} value as indicated by \`ipFamilies[${i}]\``
    problems.push(invalidValue(`spec.clusterIPs[${i}]`, ip, detail))
  }
  return problems
}

/** A second address and family may come and go; the first ones stay as they are. */
export function validateClusterIpsUpdate(next: Service, current: Service): FieldProblem[] {
  if (next.spec.type === 'ExternalName' || current.spec.type === 'ExternalName') return []
  if (isHeadless(next) && isHeadless(current)) return []
  return [
    ...validateKept({ path: 'spec.clusterIPs', what: 'clusterIP' }, next.spec.clusterIPs, current.spec.clusterIPs),
    ...(isHeadless(next) === isHeadless(current)
      ? validateKept({ path: 'spec.ipFamilies', what: 'ipFamily' }, next.spec.ipFamilies, current.spec.ipFamilies)
      : []),
    ...validateRelease(next, current),
  ]
}

function validateKept(
  field: { path: string; what: string },
  next: readonly string[] = [],
  current: readonly string[] = [],
): FieldProblem[] {
  if (current.length > 0 && next.length === 0) {
    return [invalidValue(`${field.path}[0]`, next, `primary ${field.what} can not be unset`)]
  }
  const shared = Math.min(next.length, current.length)
  return current
    .slice(0, shared)
    .flatMap((value, i) =>
      value === next[i] ? [] : [invalidValue(`${field.path}[${i}]`, next, 'may not change once set')],
    )
}

function validateRelease({ spec: next }: Service, { spec: current }: Service): FieldProblem[] {
  const released = (field: 'clusterIPs' | 'ipFamilies'): boolean =>
    (current[field]?.length ?? 0) === 2 && (next[field]?.length ?? 0) === 1
  if (next.ipFamilyPolicy === 'SingleStack') return []
  const what = released('clusterIPs') ? 'clusterIP' : released('ipFamilies') ? 'ipFamily' : undefined
  if (what === undefined) return []
  const detail = `must be set to 'SingleStack' when releasing the secondary ${what}`
  return [invalidValue('spec.ipFamilyPolicy', next.ipFamilyPolicy, detail)]
}
