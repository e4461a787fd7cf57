// The fixed part of the table: all rules. docs/modes/userspace.md has the picture and the reasons.

import type { Family } from '../../lib/ip.ts'
import type { NodeView } from '../../model/types.ts'
import type { TableBase } from '../../state/nftables/fragment.ts'
import * as nft from '../../state/nftables/language.ts'
import type { Chain, Rule } from '../../state/nftables/types.ts'
import { checkChains, firewallChains, guardElements, guardHooks } from '../shared/guards.ts'
import { chain, DSTNAT, fromPods, hookAt, matchKeys, nodePortGuard, onNewConnections } from '../shared/match.ts'
import { CHAINS, SETS } from './names.ts'
import { schemaFor } from './schema.ts'

export function planBase(node: NodeView): TableBase {
  const schema = schemaFor(node.family)
  return {
    comment: 'rules for kube-proxy',
    sets: Object.values(schema),
    chains: [
      ...firewallChains(node.family),
      ...nodePortChains(node),
      ...serviceChains(node),
      ...checkChains(node),
      listenersCheck(node.family),
      ...guardHooks([onNewConnections(CHAINS.listenersCheck)]),
      ...natHooks(),
    ],
    elements: guardElements(node, schema),
    commonSets: new Set([SETS.clusterIps]),
    sharedChains: new Set(),
  }
}

function serviceChains(node: NodeView): Chain[] {
  const { service } = matchKeys(node.family)
  const toListener = nft.rule([nft.dnatTo(node.family, service, SETS.services)])
  return [
    chain(CHAINS.clusterServices, [toListener]),
    chain(CHAINS.localServices, [
      ...shortCircuits(node, CHAINS.clusterServices),
      nft.rule([nft.dnatTo(node.family, service, SETS.localServices)]),
    ]),
    chain(CHAINS.services, [
      nft.rule([nft.isIn(service, SETS.splitServices), nft.goto(CHAINS.localServices)]),
      toListener,
      nft.rule([...nodePortGuard(node), nft.jump(CHAINS.nodePorts)]),
    ]),
  ]
}

function nodePortChains(node: NodeView): Chain[] {
  const { nodePort } = matchKeys(node.family)
  const toListener = nft.rule([nft.dnatTo(node.family, nodePort, SETS.nodePorts)])
  return [
    chain(CHAINS.clusterNodePorts, [toListener]),
    chain(CHAINS.localNodePorts, [
      ...shortCircuits(node, CHAINS.clusterNodePorts),
      nft.rule([nft.dnatTo(node.family, nodePort, SETS.localNodePorts)]),
    ]),
    chain(CHAINS.nodePorts, [
      nft.rule([nft.isIn(nodePort, SETS.splitNodePorts), nft.goto(CHAINS.localNodePorts)]),
      toListener,
    ]),
  ]
}

/** With externalTrafficPolicy Local, pods and the node itself still reach every endpoint. */
function shortCircuits(node: NodeView, toCluster: string): Rule[] {
  const isPod = fromPods(node, true)
  return [
    ...(isPod === undefined ? [] : [nft.rule([isPod, nft.goto(toCluster)], 'short-circuit pod traffic')]),
    nft.rule([nft.isLocalAddress('saddr'), nft.goto(toCluster)], 'short-circuit local traffic'),
  ]
}

/** Who dials a port of the proxy without having been sent there would get around source ranges and policies. */
function listenersCheck(family: Family): Chain {
  const { nodePort } = matchKeys(family)
  return chain(CHAINS.listenersCheck, [
    nft.rule([nft.wasDnated, nft.goBack]),
    nft.rule([nft.isIn(nodePort, SETS.listeners), nft.reject(family)]),
  ])
}

function natHooks(): Chain[] {
  const services = [nft.rule([nft.jump(CHAINS.services)])]
  return [
    chain(CHAINS.natPrerouting, services, hookAt('nat', 'prerouting', DSTNAT)),
    chain(CHAINS.natOutput, services, hookAt('nat', 'output', DSTNAT)),
  ]
}
