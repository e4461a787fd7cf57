// The fixed part of the table: all rules. docs/modes/userspace.md has the picture and the reasons.

import type { Family } from '../../../lib/ip.ts'
import type { NodeView } from '../../../model/types.ts'
import type { TableBase } from '../../../nftables/fragment.ts'
import * as nft from '../../../nftables/language.ts'
import type { Chain } from '../../../nftables/types.ts'
import { checkChains, firewallChains, guardElements, guardHooks, natHooks } from '../../../table-sync/plan/guards.ts'
import { chain, fromPods, matchKeys, nodePortGuard } from '../../../table-sync/plan/match.ts'
import { PING_SET, pingRules, pingSets } from '../../../table-sync/plan/ping.ts'
import { SOURCES } from './entrance.ts'
import { CHAINS, SETS } from './names.ts'
import { schemaFor, setsOf } from './schema.ts'

export function planBase(node: NodeView): TableBase {
  const schema = schemaFor(node.family)
  return {
    comment: 'rules for kube-proxy',
    sets: [...setsOf(schema), ...pingSets(node)],
    chains: [
      ...firewallChains(node.family),
      ...serviceChains(node),
      ...checkChains(node),
      listenersCheck(node.family),
      ...guardHooks({ incoming: [nft.rule([nft.jump(CHAINS.listenersCheck)])] }),
      ...natHooks(CHAINS.services, pingRules(node)),
    ],
    elements: guardElements(node, schema.guards),
    commonSets: new Set([SETS.clusterIps, PING_SET]),
    sharedChains: new Set([CHAINS.firewallSources, CHAINS.services]),
  }
}

/** To the proxy's listener for this frontend and this kind of client. */
function serviceChains(node: NodeView): Chain[] {
  const { family } = node
  const { service, nodePort } = matchKeys(family)
  const isPod = fromPods(node, true)
  return [
    ...SOURCES.map((source) =>
      chain(CHAINS.from[source], [
        nft.rule([nft.dnatTo(family, service, SETS.services[source])]),
        nft.rule([...nodePortGuard(node), nft.dnatTo(family, nodePort, SETS.nodePorts[source])]),
      ]),
    ),
    chain(CHAINS.services, [
      ...(isPod === undefined ? [] : [nft.rule([isPod, nft.goto(CHAINS.from.pods)])]),
      nft.rule([nft.isLocalAddress('saddr'), nft.goto(CHAINS.from.node)]),
      nft.rule([nft.goto(CHAINS.from.others)]),
    ]),
  ]
}

/** A client that dials a listener without having been led there would get around source ranges and policies. */
function listenersCheck(family: Family): Chain {
  const { service } = matchKeys(family)
  return chain(CHAINS.listenersCheck, [
    nft.rule([nft.wasDnated, nft.goBack]),
    nft.rule([nft.isIn(service, SETS.listeners), nft.reject(family)]),
  ])
}
