// The matches that rules of every mode begin with, and the shape of a chain.

import { type Cidr, type Family, mergeCidrs } from '../../lib/ip.ts'
import type { NodeView } from '../../model/types.ts'
import * as nft from '../../nftables/language.ts'
import type { Chain, Hook, Rule } from '../../nftables/types.ts'
import { GUARD_SETS } from './names.ts'

export const DSTNAT = -100
export const SRCNAT = 100

/** The match on a frontend, and on a node port. */
export interface MatchKeys {
  readonly service: readonly nft.Operand[]
  readonly nodePort: readonly nft.Operand[]
}

export function matchKeys(family: Family): MatchKeys {
  return {
    service: [nft.destinationAddress(family), nft.protocol, nft.destinationPort],
    nodePort: [nft.protocol, nft.destinationPort],
  }
}

/** The local detector's match, or undefined when there is no detector. */
export function fromPods(node: NodeView, wanted: boolean): nft.Piece | undefined {
  const detector = node.localDetector
  const op = wanted ? 'eq' : 'neq'
  switch (detector.kind) {
    case 'none':
      return undefined
    case 'cidr': {
      const range = podRange(detector.cidrs)
      if (range !== undefined) return nft.sourceIs(op, range)
      const source = [nft.sourceAddress(node.family)]
      return wanted ? nft.isIn(source, GUARD_SETS.podCidrs) : nft.isNotIn(source, GUARD_SETS.podCidrs)
    }
    case 'interface':
      return nft.inputInterface(op, detector.name)
    case 'interfacePrefix':
      return nft.inputInterface(op, `${detector.prefix}*`)
  }
}

/** The one range that pods have, which a rule can name: a set costs each packet a lookup. */
export function podRange(cidrs: readonly Cidr[]): Cidr | undefined {
  const [range, ...others] = mergeCidrs(cidrs)
  return others.length === 0 && range !== undefined && range.prefix > 0 ? range : undefined
}

/** Whether the destination is an address on which node ports are open. */
export function nodePortGuard(node: NodeView): nft.Piece[] {
  if (node.nodePortAddresses.kind === 'only') {
    return [nft.isIn([nft.destinationAddress(node.family)], GUARD_SETS.nodePortIps)]
  }
  return [nft.isLocalAddress('daddr'), nft.isNotLoopback(node.family)]
}

export function chain(name: string, rules: readonly Rule[], hook?: Hook): Chain {
  return { name, comment: undefined, hook, rules }
}

export function hookAt(type: Hook['type'], hook: Hook['hook'], priority: number): Hook {
  return { type, hook, priority }
}

export function onNewConnections(target: string): Rule {
  return nft.rule([nft.isNewConnection, nft.jump(target)])
}

/** Marks connections to cluster IPs that are to be masqueraded. */
export function clusterIpMasquerade(node: NodeView): Rule[] {
  const mark = nft.addMark(node.masqueradeMark)
  const isClusterIp = nft.isIn([nft.destinationAddress(node.family)], GUARD_SETS.clusterIps)
  if (node.masqueradeAll) return [nft.rule([isClusterIp, mark], 'masquerade all clusterIP traffic')]
  const notPod = fromPods(node, false)
  if (notPod === undefined) return []
  // Most clients are pods, and end here.
  return [nft.rule([notPod, isClusterIp, mark], 'masquerade clusterIP traffic from outside cluster')]
}
