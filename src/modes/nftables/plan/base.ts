// The fixed part of the table: every rule there is, apart from one per number of endpoints in use and the few of
// services with session affinity. docs/modes/nftables.md has the picture and the reasons.

import type { NodeView } from '../../../model/types.ts'
import type { TableBase } from '../../../nftables/fragment.ts'
import * as nft from '../../../nftables/language.ts'
import type { Chain, Rule } from '../../../nftables/types.ts'
import { checkChains, firewallChains, guardElements, guardHooks, natHooks } from '../../../table-sync/plan/guards.ts'
import {
  chain,
  clusterIpMasquerade,
  fromPods,
  hookAt,
  matchKeys,
  type MatchKeys,
  nodePortGuard,
  SRCNAT,
} from '../../../table-sync/plan/match.ts'
import { PING_SET, pingRules, pingSets } from '../../../table-sync/plan/ping.ts'
import { localhostChecks, refusingChains } from './localhost.ts'
import { CHAINS, SETS } from './names.ts'
import { schemaFor } from './schema.ts'

export function planBase(node: NodeView): TableBase {
  const keys = matchKeys(node.family)
  const schema = schemaFor(node.family)
  return {
    comment: 'rules for kube-proxy',
    // The first comes with the rule that uses it.
    sets: [
      ...Object.values(schema).filter(
        (set) =>
          set !== schema.firewallIps && (set !== schema.refusedLocalhost || node.localhostNodePorts !== undefined),
      ),
      ...pingSets(node),
    ],
    chains: [
      ...firewallChains(node.family, []),
      ...nodePortChains(node, keys),
      ...serviceChains(node, keys),
      ...affinityChains(),
      ...refusingChains(node),
      ...checkChains(node, localhostChecks(node)),
      masqueradingChain(node),
      ...hookChains(node),
    ],
    elements: guardElements(node, schema),
    commonSets: new Set([SETS.clusterIps, SETS.hairpin, PING_SET]),
    sharedChains: new Set([
      CHAINS.specialServices,
      CHAINS.specialNodePorts,
      CHAINS.pickServices,
      CHAINS.pickLocalServices,
      CHAINS.pickNodePorts,
      CHAINS.pickLocalNodePorts,
      CHAINS.firewallCheck,
      CHAINS.firewallSources,
      CHAINS.recordServices,
      CHAINS.recordNodePorts,
    ]),
  }
}

function serviceChains(node: NodeView, { service }: MatchKeys): Chain[] {
  const { clusterServices, localServices, servedServices, specialServices, stickyServices } = CHAINS
  const mark = nft.addMark(node.masqueradeMark)
  return [
    ...choosingChains(node, service, {
      pick: CHAINS.pickServices,
      pickLocal: CHAINS.pickLocalServices,
      cluster: clusterServices,
      sticky: stickyServices,
      local: localServices,
      stick: SETS.stickServices,
      stickLocal: SETS.stickLocalServices,
    }),
    chain(specialServices, [
      nft.rule([nft.isIn(service, SETS.localServices), nft.goto(localServices)]),
      nft.rule([nft.isIn(service, SETS.masqueradeServices), mark], 'masquerade externalTrafficPolicy Cluster'),
      nft.rule([nft.goto(stickyServices)]),
    ]),
    chain(servedServices, [
      nft.rule([nft.isIn(service, SETS.specialServices), nft.goto(specialServices)]),
      nft.rule([nft.goto(clusterServices)]),
    ]),
    chain(CHAINS.services, [
      ...clusterIpMasquerade(node),
      // What is no frontend pays for this lookup alone, and for a node port.
      nft.rule([nft.isIn(service, SETS.services), nft.goto(servedServices)]),
      nft.rule([...nodePortGuard(node), nft.jump(CHAINS.nodePorts)]),
    ]),
  ]
}

function nodePortChains(node: NodeView, { nodePort }: MatchKeys): Chain[] {
  const { clusterNodePorts, localNodePorts, servedNodePorts, specialNodePorts, stickyNodePorts } = CHAINS
  const mark = nft.addMark(node.masqueradeMark)
  const why = 'masquerade externalTrafficPolicy Cluster'
  return [
    ...choosingChains(node, nodePort, {
      pick: CHAINS.pickNodePorts,
      pickLocal: CHAINS.pickLocalNodePorts,
      cluster: clusterNodePorts,
      sticky: stickyNodePorts,
      local: localNodePorts,
      stick: SETS.stickNodePorts,
      stickLocal: SETS.stickLocalNodePorts,
    }),
    chain(specialNodePorts, [
      nft.rule([nft.isIn(nodePort, SETS.localNodePorts), nft.goto(localNodePorts)]),
      nft.rule([mark], why),
      nft.rule([nft.goto(stickyNodePorts)]),
    ]),
    chain(servedNodePorts, [
      nft.rule([nft.isIn(nodePort, SETS.specialNodePorts), nft.goto(specialNodePorts)]),
      nft.rule([mark, nft.goto(clusterNodePorts)], why),
    ]),
    chain(CHAINS.nodePorts, [nft.rule([nft.isIn(nodePort, SETS.nodePorts), nft.goto(servedNodePorts)])]),
  ]
}

type ChoosingNames = Readonly<
  Record<'pick' | 'pickLocal' | 'cluster' | 'sticky' | 'local' | 'stick' | 'stickLocal', string>
>

/** How an endpoint is chosen; the same for frontends with an address and for node ports. */
function choosingChains(node: NodeView, key: MatchKeys['service'], names: ChoosingNames): Chain[] {
  return [
    chain(names.pick, []),
    chain(names.pickLocal, []),
    chain(names.cluster, pick(names.pick)),
    chain(names.sticky, [nft.rule([nft.verdictFrom(key, names.stick)]), nft.rule([nft.goto(names.cluster)])]),
    chain(names.local, [
      ...shortCircuits(node, names.sticky),
      nft.rule([nft.verdictFrom(key, names.stickLocal)]),
      ...pick(names.pickLocal),
    ]),
  ]
}

/**
 * Twice, on purpose: while a commit takes effect, a packet can miss a frontend that moves from one set to another between
 * two rules. The second pass then finds it where it is now.
 */
function pick(chainName: string): Rule[] {
  return [nft.rule([nft.jump(chainName)]), nft.rule([nft.jump(chainName)], 'again, for changes that come in between')]
}

/** With externalTrafficPolicy Local, pods and the node itself still reach every endpoint. */
function shortCircuits(node: NodeView, toCluster: string): Rule[] {
  const isPod = fromPods(node, true)
  const fromNode = nft.isLocalAddress('saddr')
  return [
    ...(isPod === undefined ? [] : [nft.rule([isPod, nft.goto(toCluster)], 'short-circuit pod traffic')]),
    nft.rule([fromNode, nft.addMark(node.masqueradeMark)], 'masquerade local traffic'),
    nft.rule([fromNode, nft.goto(toCluster)], 'short-circuit local traffic'),
  ]
}

/**
 * Notes which endpoint a client got. Runs after the translation, when both ends are known. Rules come with services that need
 * them (see affinity.ts), so that others cost nothing; what is no frontend by its address may be a node port.
 */
function affinityChains(): Chain[] {
  return [
    chain(CHAINS.recordServices, []),
    chain(CHAINS.recordNodePorts, []),
    chain(CHAINS.affinityCheck, [
      nft.rule([nft.jump(CHAINS.recordServices)]),
      nft.rule([nft.jump(CHAINS.recordNodePorts)]),
    ]),
  ]
}

function masqueradingChain(node: NodeView): Chain {
  const { family, masqueradeMark } = node
  const tuple = [nft.sourceAddress(family), nft.destinationAddress(family), nft.protocol, nft.destinationPort]
  return chain(CHAINS.masquerading, [
    nft.rule([nft.isMarked(masqueradeMark), nft.flipMark(masqueradeMark), nft.masquerade]),
    nft.rule([nft.wasDnated, nft.isIn(tuple, SETS.hairpin), nft.masquerade]),
  ])
}

function hookChains(node: NodeView): Chain[] {
  // What was translated is for an endpoint: none of the refusals is meant for it.
  const remember = nft.rule([nft.wasDnated, nft.goto(CHAINS.affinityCheck)])
  return [
    chain(CHAINS.natPostrouting, [nft.rule([nft.jump(CHAINS.masquerading)])], hookAt('nat', 'postrouting', SRCNAT)),
    ...guardHooks({ all: [remember] }),
    ...natHooks(CHAINS.services, pingRules(node)),
  ]
}
