// What the proxy knows about this node, apart from services.

import type { Balance } from './balance.ts'
import type { Node } from '../kube/types.ts'
import { compareCidrs, formatCidr, parseCidr } from '../lib/ip.ts'
import type { Cidr, Family } from '../lib/ip.ts'
import { planLocalDetector } from './local-detector.ts'
import type { DetectLocalSettings } from './local-detector.ts'
import { isUnknown, planNodeIps } from './node-ips.ts'
import { namesLocalhost, planNodePortAddresses } from './node-port-addresses.ts'
import type { NodeView } from './types.ts'

/** What the configuration says, for the active mode. */
export interface NodeSettings {
  readonly nodeName: string
  readonly bindAddress: string
  readonly detectLocal: DetectLocalSettings
  /** As configured; the nftables mode has `['primary']` where nothing is. Empty: all. */
  readonly nodePortAddresses: readonly string[]
  /** Whether the mode needs the proxy's help with node ports on 127.0.0.1 and ::1. */
  readonly localhostNodePorts?: boolean
  /** Whether addresses of services answer pings. */
  readonly answerPing?: boolean
  /** How Services that do not say choose a backend; absent: as the mode does. */
  readonly balance?: Balance | undefined
  readonly masqueradeAll: boolean
  readonly masqueradeBit: number
}

export interface NodeFacts {
  /** Our Node, once there is one. */
  readonly node: Node | undefined
  /** Every address of this machine's interfaces, of both families. Without those that the proxy itself put there. */
  readonly machineAddresses: readonly string[]
  /** Of all ServiceCIDR objects, both families. */
  readonly serviceCidrs: readonly string[]
}

/** The node as one family sees it. */
export function planNodeView(settings: NodeSettings, facts: NodeFacts, family: Family): NodeView {
  const nodeIp = planNodeIps(facts.node, settings.bindAddress).ips[family]
  const { machineAddresses } = facts
  return {
    family,
    nodeName: settings.nodeName,
    nodeIp,
    zone: facts.node?.zone === '' ? undefined : facts.node?.zone,
    localDetector: planLocalDetector(settings.detectLocal, facts.node?.podCIDRs ?? [], family),
    masqueradeAll: settings.masqueradeAll,
    // Not a shift: bit 31 would make it negative.
    masqueradeMark: 2 ** settings.masqueradeBit,
    nodePortAddresses: planNodePortAddresses(settings.nodePortAddresses, { family, nodeIp, machineAddresses }),
    ...(settings.localhostNodePorts === true && {
      localhostNodePorts: namesLocalhost(settings.nodePortAddresses, family) ? 'served by listeners' : 'refused',
    }),
    ...(settings.answerPing === true && { answerPing: true }),
    ...(settings.balance !== undefined && { balance: settings.balance }),
    serviceCidrs: cidrsOf(facts.serviceCidrs, family),
  }
}

/** Settings that work on this node, but perhaps not as meant. */
export function nodeViewWarnings(settings: NodeSettings, facts: NodeFacts): string[] {
  const warnings: string[] = []
  const { primaryFamily, ips } = planNodeIps(facts.node, settings.bindAddress)
  const { mode, clusterCIDRs } = settings.detectLocal
  if (isUnknown(ips[primaryFamily])) {
    warnings.push("Cannot determine this node's IP, assuming loopback: set --bind-address if that is wrong")
  }
  const view = planNodeView(settings, facts, primaryFamily)
  if (view.localDetector.kind === 'none') {
    const given = mode === 'NodeCIDR' ? (facts.node?.podCIDRs ?? []) : clusterCIDRs
    warnings.push(
      `detectLocalMode is ${mode}, but ${JSON.stringify(given)} has nothing for IPv${primaryFamily}: no traffic counts as local`,
    )
  }
  const isClosed = view.nodePortAddresses.kind === 'only' && view.nodePortAddresses.addresses.length === 0
  if (isClosed && view.localhostNodePorts !== 'served by listeners') {
    const configured = JSON.stringify(settings.nodePortAddresses)
    warnings.push(`nodePortAddresses ${configured} matches no IPv${primaryFamily} address: node ports are closed`)
  }
  return warnings
}

function cidrsOf(texts: readonly string[], family: Family): Cidr[] {
  const cidrs = new Map<string, Cidr>()
  for (const text of texts) {
    const cidr = parseCidr(text.trim())
    if (cidr?.family === family) cidrs.set(formatCidr(cidr), cidr)
  }
  return [...cidrs.values()].sort(compareCidrs)
}
