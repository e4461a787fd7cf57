// kube-proxy's checks of a configuration on this node, by IP family.

import { ipFamily, parseCidr } from '../lib/ip.ts'
import type { Family } from '../lib/ip.ts'
import { planNodeIps } from './node-ips.ts'
import { namesFamily } from './node-port-addresses.ts'
import type { NodeFacts, NodeSettings } from './node-view.ts'

/** Other settings of the configuration with a family. */
export interface OtherSettings {
  /** ipvs.excludeCIDRs */
  readonly excludeCIDRs: readonly string[]
  /** The addresses of the two servers, without ports. */
  readonly servers: Readonly<Record<'healthzBindAddress' | 'metricsBindAddress', string>>
  /** The families that this machine has. */
  readonly families: readonly Family[]
}

export interface ConfigProblems {
  /** It works, but perhaps not as meant. */
  readonly warnings: readonly string[]
  /** It cannot work. */
  readonly errors: readonly string[]
}

export function planConfigProblems(settings: NodeSettings, facts: NodeFacts, other: OtherSettings): ConfigProblems {
  const { primaryFamily: family, ips } = planNodeIps(facts.node, settings.bindAddress)
  if (!other.families.includes(family)) {
    const error = `the primary IP family of this node is IPv${family}, which this machine does not have`
    return { warnings: [], errors: [error] }
  }
  const nodePorts = checkNodePorts(settings, { family, ips, isDualStack: saysDualStack(settings, facts, other) })
  const { warnings, errors } = checkFamilies(settings, facts, { ...other, family })
  return { warnings: [...nodePorts, ...warnings], errors }
}

/** The cluster's own families are not known yet. */
function saysDualStack(settings: NodeSettings, facts: NodeFacts, { excludeCIDRs }: OtherSettings): boolean {
  const podCIDRs = facts.node?.podCIDRs ?? []
  return [settings.detectLocal.clusterCIDRs, settings.nodePortAddresses, excludeCIDRs, podCIDRs].some(
    (cidrs) => new Set(cidrs.flatMap((cidr) => parseCidr(cidr)?.family ?? [])).size === 2,
  )
}

interface NodeFamilies {
  readonly family: Family
  readonly ips: Readonly<Record<Family, string>>
  readonly isDualStack: boolean
}

/** Without an entry of a family in nodePortAddresses, node ports are open on all its addresses. */
function checkNodePorts({ nodePortAddresses }: NodeSettings, { family, ips, isDualStack }: NodeFamilies): string[] {
  const names = (which: Family) => namesFamily(nodePortAddresses, which, ips[which])
  const second = otherThan(family)
  const given = `nodePortAddresses ${JSON.stringify(nodePortAddresses)}`
  if (!names(family) && !names(second)) {
    const what = nodePortAddresses.length === 0 ? 'nodePortAddresses is unset' : `${given} names no address`
    return [`${what}: node ports are open on all local addresses; consider "primary"`]
  }
  if (isDualStack && !names(second)) {
    const what = `The cluster seems to be dual-stack, but ${given} names IPv${family} addresses only`
    return [`${what}: node ports are open on all local IPv${second} addresses`]
  }
  if (names(family)) return []
  const what = `The primary IP family of this node is IPv${family}, but ${given} names IPv${second} addresses only`
  return [`${what}: node ports are open on all local IPv${family} addresses`]
}

function checkFamilies(
  { detectLocal }: NodeSettings,
  { node }: NodeFacts,
  { excludeCIDRs, servers, families, family }: OtherSettings & { readonly family: Family },
): ConfigProblems {
  const wrong = otherThan(family)
  const isDualStack = families.length > 1
  const cluster = `this node is ${isDualStack ? `IPv${family} first` : `IPv${family} only`}`
  const warnings: string[] = []
  const errors: string[] = []
  const isWrong = (cidrs: readonly string[]) =>
    cidrs.length > 0 && cidrs.every((cidr) => parseCidr(cidr)?.family === wrong)
  if (isWrong(detectLocal.clusterCIDRs)) {
    const isFatal = detectLocal.mode === 'ClusterCIDR' && !isDualStack
    ;(isFatal ? errors : warnings).push(`${cluster}, but clusterCIDR is IPv${wrong} only`)
  }
  if (isWrong(node?.podCIDRs ?? [])) {
    const isFatal = detectLocal.mode === 'NodeCIDR'
    ;(isFatal ? errors : warnings).push(`${cluster}, but spec.podCIDRs of the Node is IPv${wrong} only`)
  }
  if (isDualStack) return { warnings, errors }
  if (isWrong(excludeCIDRs)) warnings.push(`${cluster}, but ipvs.excludeCIDRs is IPv${wrong} only`)
  for (const [name, host] of Object.entries(servers)) {
    const isUnspecified = host === '0.0.0.0' || host === '::'
    if (ipFamily(host) !== wrong || isUnspecified) continue
    warnings.push(`${cluster}, but ${name} is IPv${wrong}`)
  }
  return { warnings, errors }
}

function otherThan(family: Family): Family {
  return family === 4 ? 6 : 4
}
