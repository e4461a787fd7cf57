// Which families a service gets, from what it says and what the cluster has.

import { ipFamily } from '../../../../../src/lib/ip.ts'
import { invalidValue } from '../fields/problem.ts'
import { isHeadless } from '../objects/service.ts'
import { sameJson } from '../json.ts'
import type { FieldProblem } from '../fields/problem.ts'
import type { IPFamily, Service, ServiceSpec } from '../objects/service.ts'

/** Fills in ipFamilyPolicy and ipFamilies. What it returns are the reasons why that cannot be done. */
export function settleFamilies(
  next: Service,
  current: Service | undefined,
  available: readonly IPFamily[],
): FieldProblem[] {
  const { spec } = next
  if (spec.type === 'ExternalName') return []
  if (keepsPreferDualStack(spec, current?.spec)) return []
  const nakedHeadless = isHeadless(next) && Object.keys(spec.selector ?? {}).length === 0
  spec.ipFamilyPolicy ??= current?.spec.ipFamilyPolicy ?? (nakedHeadless ? 'RequireDualStack' : 'SingleStack')

  const problems = [
    ...(current === undefined ? [] : followPolicy(spec, current.spec)),
    ...checkPolicy(spec),
    ...inferFamilies(spec, available),
  ]
  if (problems.length > 0) return problems
  // A service without a selector may have families that the cluster lacks.
  if (nakedHeadless) {
    spec.ipFamilies ??= [available[0] ?? 'IPv4']
    if (spec.ipFamilyPolicy !== 'SingleStack') addSecond(spec.ipFamilies)
    return []
  }
  return fillFamilies(spec, available)
}

/** A service that merely prefers two stacks stays as it is when the cluster gains or loses one. */
function keepsPreferDualStack(next: ServiceSpec, current: ServiceSpec | undefined): boolean {
  return (
    current !== undefined &&
    current.type !== 'ExternalName' &&
    next.ipFamilyPolicy === 'PreferDualStack' &&
    current.ipFamilyPolicy === 'PreferDualStack' &&
    sameJson(next.ipFamilies, current.ipFamilies) &&
    sameJson(next.clusterIPs, current.clusterIPs)
  )
}

/** One stack asked for, two there: the second goes. Two there, one given, and one stack not asked for: an error. */
function followPolicy(next: ServiceSpec, current: ServiceSpec): FieldProblem[] {
  if (next.ipFamilyPolicy === 'SingleStack') {
    if (sameJson(next.clusterIPs, current.clusterIPs)) next.clusterIPs = next.clusterIPs?.slice(0, 1) ?? []
    if (next.clusterIPs?.length === 0) delete next.clusterIPs
    if (sameJson(next.ipFamilies, current.ipFamilies) && next.ipFamilies !== undefined) {
      next.ipFamilies = next.ipFamilies.slice(0, 1)
    }
    return []
  }
  const reduced = (field: 'clusterIPs' | 'ipFamilies'): boolean =>
    (current[field]?.length ?? 0) === 2 && next[field]?.length === 1
  const what = reduced('clusterIPs') ? 'cluster IP' : reduced('ipFamilies') ? 'IP family' : undefined
  if (what === undefined) return []
  const detail = `must be 'SingleStack' to release the secondary ${what}`
  return [invalidValue('spec.ipFamilyPolicy', next.ipFamilyPolicy, detail)]
}

function checkPolicy({ ipFamilyPolicy, clusterIPs = [], ipFamilies = [] }: ServiceSpec): FieldProblem[] {
  if (ipFamilyPolicy !== 'SingleStack') return []
  const what = clusterIPs.length === 2 ? 'cluster IPs' : ipFamilies.length === 2 ? 'IP families' : undefined
  if (what === undefined) return []
  const detail = `must be 'RequireDualStack' or 'PreferDualStack' when multiple ${what} are specified`
  return [invalidValue('spec.ipFamilyPolicy', ipFamilyPolicy, detail)]
}

/** An address says its family. */
function inferFamilies(spec: ServiceSpec, available: readonly IPFamily[]): FieldProblem[] {
  return (spec.clusterIPs ?? []).flatMap((ip, i) => {
    if (ip === 'None' || spec.ipFamilies?.[i] !== undefined) return []
    const family: IPFamily = ipFamily(ip) === 6 ? 'IPv6' : 'IPv4'
    if (!available.includes(family)) {
      const detail = `${family} is not configured on this cluster`
      return [invalidValue(`spec.clusterIPs[${i}]`, spec.clusterIPs, detail)]
    }
    spec.ipFamilies = [...(spec.ipFamilies ?? []), family]
    return []
  })
}

function fillFamilies(spec: ServiceSpec, available: readonly IPFamily[]): FieldProblem[] {
  const problems = (spec.ipFamilies ?? []).flatMap((family, i) =>
    available.includes(family) ? [] : [invalidValue(`spec.ipFamilies[${i}]`, family, 'not configured on this cluster')],
  )
  if (spec.ipFamilyPolicy === 'RequireDualStack' && available.length < 2) {
    const detail = 'this cluster is not configured for dual-stack services'
    problems.unshift(invalidValue('spec.ipFamilyPolicy', spec.ipFamilyPolicy, detail))
  }
  if (problems.length > 0) return problems
  spec.ipFamilies ??= [available[0] ?? 'IPv4']
  if (spec.ipFamilyPolicy !== 'SingleStack' && available.length > 1) addSecond(spec.ipFamilies)
  return []
}

function addSecond(families: IPFamily[]): void {
  if (families.length === 1) families.push(families[0] === 'IPv4' ? 'IPv6' : 'IPv4')
}
