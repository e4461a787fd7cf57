// Rules that packets meet only while a service needs them. Most clusters have no service with source ranges, and many have none
// without endpoints: then no packet is looked up there.

import type { NodeView } from '../../../model/types.ts'
import type { Fragment, SharedRule } from '../../../nftables/fragment.ts'
import * as nft from '../../../nftables/language.ts'
import { matchKeys, onNewConnections } from './match.ts'
import { GUARD_CHAINS as CHAINS, GUARD_SETS as SETS } from './names.ts'

/** The chains of the base that hold such rules and no others. */
export const GATE_CHAINS: readonly string[] = [
  CHAINS.filterPreroutingPreDnat,
  CHAINS.filterOutputPreDnat,
  CHAINS.serviceEndpointsCheck,
  CHAINS.nodePortEndpointsCheck,
]

type Gates = ReadonlyMap<string, readonly SharedRule[]>

const cache = new Map<string, Gates>()

/** What leads packets to the sets in which a fragment has elements. */
export function gateRules(node: NodeView, elements: Fragment['elements']): SharedRule[] {
  const id = `${node.family} ${node.nodePortAddresses.kind}`
  let gates = cache.get(id)
  if (gates === undefined) cache.set(id, (gates = makeGates(node)))
  const rules: SharedRule[] = []
  for (const { set } of elements) {
    const found = gates.get(set.name)
    if (found !== undefined) rules.push(...found)
  }
  return rules
}

function makeGates({ family, nodePortAddresses }: NodeView): Gates {
  const { service, nodePort } = matchKeys(family)
  const daddr = [nft.destinationAddress(family)]
  const isNodePortIp = nodePortAddresses.kind === 'only' ? nft.isIn(daddr, SETS.nodePortIps) : nft.isNotLoopback(family)
  const refusals = [
    [CHAINS.serviceEndpointsCheck, SETS.rejectServices, [nft.isIn(service, SETS.rejectServices), nft.reject(family)]],
    [CHAINS.serviceEndpointsCheck, SETS.dropServices, [nft.isIn(service, SETS.dropServices), nft.drop]],
    [
      CHAINS.nodePortEndpointsCheck,
      SETS.rejectNodePorts,
      [isNodePortIp, nft.isIn(nodePort, SETS.rejectNodePorts), nft.reject(family)],
    ],
    [
      CHAINS.nodePortEndpointsCheck,
      SETS.dropNodePorts,
      [isNodePortIp, nft.isIn(nodePort, SETS.dropNodePorts), nft.drop],
    ],
  ] as const
  const firewall = [CHAINS.filterPreroutingPreDnat, CHAINS.filterOutputPreDnat].map((chain) => ({
    name: chain,
    chain,
    rule: onNewConnections(CHAINS.firewallCheck),
  }))
  return new Map<string, readonly SharedRule[]>([
    [SETS.firewallIps, firewall],
    ...refusals.map(([chain, set, pieces]): [string, SharedRule[]] => [
      set,
      [{ name: set, chain, rule: nft.rule(pieces) }],
    ]),
  ])
}
