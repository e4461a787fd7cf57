// The fixed part of the table: every rule there is, apart from one per number of endpoints in use and the few of
// services with session affinity. docs/modes/nftables.md has the picture and the reasons.

import { cidrEnd, type Family, mergeCidrs } from '../../lib/ip.ts'
import type { NodeView } from '../../model/types.ts'
import { addressField } from '../../state/nftables/fields.ts'
import type { SetElements, TableBase } from '../../state/nftables/fragment.ts'
import * as nft from '../../state/nftables/language.ts'
import type { Chain, Hook, Rule } from '../../state/nftables/types.ts'
import { CHAINS, SETS } from './names.ts'
import { schemaFor } from './schema.ts'

const DSTNAT = -100
const SRCNAT = 100
const PROTOCOLS = ['TCP', 'UDP', 'SCTP'] as const

/** The match on a frontend, and on a node port. */
interface Keys {
  readonly service: readonly nft.Operand[]
  readonly nodePort: readonly nft.Operand[]
}

export function planBase(node: NodeView): TableBase {
  const keys = matchKeys(node.family)
  return {
    comment: 'rules for kube-proxy',
    sets: Object.values(schemaFor(node.family)),
    chains: [
      ...firewallChains(node.family, keys),
      ...nodePortChains(node, keys),
      ...serviceChains(node, keys),
      affinityChain(node.family),
      ...checkChains(node, keys),
      masqueradingChain(node),
      ...hookChains(),
    ],
    elements: baseElements(node),
    commonSets: new Set([SETS.clusterIps, SETS.hairpin]),
    sharedChains: new Set([
      CHAINS.pickServices,
      CHAINS.pickLocalServices,
      CHAINS.pickNodePorts,
      CHAINS.pickLocalNodePorts,
    ]),
  }
}

export function matchKeys(family: Family): Keys {
  return {
    service: [nft.destinationAddress(family), nft.protocol, nft.destinationPort],
    nodePort: [nft.protocol, nft.destinationPort],
  }
}

/** Source ranges, before anything is translated. */
function firewallChains(family: Family, { service }: Keys): Chain[] {
  return [
    chain(CHAINS.firewallSources, [
      nft.rule([nft.isIn([...service, nft.sourceAddress(family)], SETS.firewallAllowed), nft.goBack]),
      nft.rule([nft.drop]),
    ]),
    chain(CHAINS.firewallCheck, [nft.rule([nft.isIn(service, SETS.firewallIps), nft.goto(CHAINS.firewallSources)])]),
  ]
}

function serviceChains(node: NodeView, { service }: Keys): Chain[] {
  const mark = nft.addMark(node.masqueradeMark)
  return [
    chain(CHAINS.pickServices, []),
    chain(CHAINS.pickLocalServices, []),
    chain(CHAINS.clusterServices, [
      nft.rule([nft.verdictFrom(service, SETS.stickServices)]),
      ...pick(CHAINS.pickServices),
    ]),
    chain(CHAINS.localServices, [
      ...shortCircuits(node, CHAINS.clusterServices),
      nft.rule([nft.verdictFrom(service, SETS.stickLocalServices)]),
      ...pick(CHAINS.pickLocalServices),
    ]),
    chain(CHAINS.services, [
      ...clusterIpMasquerade(node),
      nft.rule([nft.isIn(service, SETS.masqueradeServices), mark], 'masquerade externalTrafficPolicy Cluster'),
      nft.rule([nft.isIn(service, SETS.localServices), nft.goto(CHAINS.localServices)]),
      nft.rule([nft.isIn(service, SETS.services), nft.goto(CHAINS.clusterServices)]),
      nft.rule([...nodePortGuard(node), nft.jump(CHAINS.nodePorts)]),
    ]),
  ]
}

function nodePortChains(node: NodeView, { nodePort }: Keys): Chain[] {
  return [
    chain(CHAINS.pickNodePorts, []),
    chain(CHAINS.pickLocalNodePorts, []),
    chain(CHAINS.clusterNodePorts, [
      nft.rule([nft.verdictFrom(nodePort, SETS.stickNodePorts)]),
      ...pick(CHAINS.pickNodePorts),
    ]),
    chain(CHAINS.localNodePorts, [
      ...shortCircuits(node, CHAINS.clusterNodePorts),
      nft.rule([nft.verdictFrom(nodePort, SETS.stickLocalNodePorts)]),
      ...pick(CHAINS.pickLocalNodePorts),
    ]),
    chain(CHAINS.nodePorts, [
      nft.rule([nft.isIn(nodePort, SETS.masqueradeNodePorts), nft.addMark(node.masqueradeMark)]),
      nft.rule([nft.isIn(nodePort, SETS.localNodePorts), nft.goto(CHAINS.localNodePorts)]),
      nft.rule([nft.isIn(nodePort, SETS.nodePorts), nft.goto(CHAINS.clusterNodePorts)]),
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

function clusterIpMasquerade(node: NodeView): Rule[] {
  const mark = nft.addMark(node.masqueradeMark)
  const isClusterIp = nft.isIn([nft.destinationAddress(node.family)], SETS.clusterIps)
  if (node.masqueradeAll) return [nft.rule([isClusterIp, mark], 'masquerade all clusterIP traffic')]
  const notPod = fromPods(node, false)
  if (notPod === undefined) return []
  return [nft.rule([isClusterIp, notPod, mark], 'masquerade clusterIP traffic from outside cluster')]
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

/** The local detector's match, or undefined when there is no detector. */
export function fromPods(node: NodeView, wanted: boolean): nft.Piece | undefined {
  const detector = node.localDetector
  const op = wanted ? 'eq' : 'neq'
  switch (detector.kind) {
    case 'none':
      return undefined
    case 'cidr': {
      const source = [nft.sourceAddress(node.family)]
      return wanted ? nft.isIn(source, SETS.podCidrs) : nft.isNotIn(source, SETS.podCidrs)
    }
    case 'interface':
      return nft.inputInterface(op, detector.name)
    case 'interfacePrefix':
      return nft.inputInterface(op, `${detector.prefix}*`)
  }
}

function nodePortGuard(node: NodeView): nft.Piece[] {
  if (node.nodePortAddresses.kind === 'only') {
    return [nft.isIn([nft.destinationAddress(node.family)], SETS.nodePortIps)]
  }
  return [nft.isLocalAddress('daddr'), nft.isNotLoopback(node.family)]
}

/** Notes which endpoint a client got. Runs after the translation, when both ends are known. */
function affinityChain(family: Family): Chain {
  const service = [nft.originalDestinationAddress(family), nft.protocol, nft.originalDestinationPort]
  const nodePort = [nft.protocol, nft.originalDestinationPort]
  return chain(
    CHAINS.recordAffinity,
    PROTOCOLS.flatMap((name) => [
      nft.rule([nft.isProtocol(name), nft.verdictFrom(service, SETS.rememberServices)]),
      nft.rule([nft.isProtocol(name), nft.isIn(service, SETS.services), nft.goBack]),
      nft.rule([nft.isProtocol(name), nft.isIn(service, SETS.localServices), nft.goBack]),
      nft.rule([nft.isProtocol(name), nft.verdictFrom(nodePort, SETS.rememberNodePorts)]),
    ]),
  )
}

/** What reaches these was not translated. */
function checkChains(node: NodeView, { service, nodePort }: Keys): Chain[] {
  const { family } = node
  const daddr = [nft.destinationAddress(family)]
  const guard = node.nodePortAddresses.kind === 'only' ? nft.isIn(daddr, SETS.nodePortIps) : nft.isNotLoopback(family)
  return [
    chain(CHAINS.serviceEndpointsCheck, [
      nft.rule([nft.isIn(service, SETS.rejectServices), nft.reject(family)]),
      nft.rule([nft.isIn(service, SETS.dropServices), nft.drop]),
    ]),
    chain(CHAINS.nodePortEndpointsCheck, [
      nft.rule([guard, nft.isIn(nodePort, SETS.rejectNodePorts), nft.reject(family)]),
      nft.rule([guard, nft.isIn(nodePort, SETS.dropNodePorts), nft.drop]),
    ]),
    chain(CHAINS.clusterIpsCheck, [
      nft.rule([nft.isIn(daddr, SETS.clusterIps), nft.reject(family)], 'Reject traffic to invalid ports of ClusterIPs'),
      nft.rule([nft.isIn(daddr, SETS.serviceCidrs), nft.drop], 'Drop traffic to unallocated ClusterIPs'),
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

function hookChains(): Chain[] {
  const onNew = (target: string) => nft.rule([nft.isNewConnection, nft.jump(target)])
  const record = nft.rule([nft.isNewConnection, nft.wasDnated, nft.jump(CHAINS.recordAffinity)])
  const hook = (type: Hook['type'], at: Hook['hook'], priority: number): Hook => ({ type, hook: at, priority })
  return [
    chain(CHAINS.natPostrouting, [nft.rule([nft.jump(CHAINS.masquerading)])], hook('nat', 'postrouting', SRCNAT)),
    chain(CHAINS.affinityPrerouting, [record], hook('filter', 'prerouting', DSTNAT + 10)),
    chain(CHAINS.affinityOutput, [record], hook('filter', 'output', DSTNAT + 10)),
    chain(
      CHAINS.filterInput,
      [onNew(CHAINS.nodePortEndpointsCheck), onNew(CHAINS.serviceEndpointsCheck)],
      hook('filter', 'input', 0),
    ),
    chain(
      CHAINS.filterForward,
      [onNew(CHAINS.serviceEndpointsCheck), onNew(CHAINS.clusterIpsCheck)],
      hook('filter', 'forward', 0),
    ),
    chain(
      CHAINS.filterOutput,
      [onNew(CHAINS.serviceEndpointsCheck), onNew(CHAINS.clusterIpsCheck)],
      hook('filter', 'output', 0),
    ),
    chain(CHAINS.filterPreroutingPreDnat, [onNew(CHAINS.firewallCheck)], hook('filter', 'prerouting', DSTNAT - 10)),
    chain(CHAINS.filterOutputPreDnat, [onNew(CHAINS.firewallCheck)], hook('filter', 'output', DSTNAT - 10)),
    chain(CHAINS.natPrerouting, [nft.rule([nft.jump(CHAINS.services)])], hook('nat', 'prerouting', DSTNAT)),
    chain(CHAINS.natOutput, [nft.rule([nft.jump(CHAINS.services)])], hook('nat', 'output', DSTNAT)),
  ]
}

function baseElements(node: NodeView): SetElements[] {
  const schema = schemaFor(node.family)
  const { nodePortAddresses, localDetector } = node
  const ips = nodePortAddresses.kind === 'only' ? nodePortAddresses.addresses : []
  const pods = localDetector.kind === 'cidr' ? localDetector.cidrs : []
  const ranges = (cidrs: NodeView['serviceCidrs']) =>
    mergeCidrs(cidrs).map((cidr) => ({ key: cidr.network, keyEnd: cidrEnd(cidr) }))
  return [
    { set: schema.nodePortIps, elements: ips.map((ip) => ({ key: addressField(ip) })) },
    { set: schema.podCidrs, elements: ranges(pods) },
    { set: schema.serviceCidrs, elements: ranges(node.serviceCidrs) },
  ]
}

function chain(name: string, rules: readonly Rule[], hook?: Hook): Chain {
  return { name, comment: undefined, hook, rules }
}
