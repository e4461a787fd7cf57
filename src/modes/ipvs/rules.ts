// The rules around IPVS: every one there is, apart from one per number of endpoints in use by short circuits.
// docs/modes/ipvs.md has the picture and the reasons.

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

/** Addresses of the machine, which the rules depend on and the model does not know. Canonical. */
export interface NodeAddresses {
  /** All that it has, but for those that the mode itself has put on kube-ipvs0. */
  readonly own: readonly string[]
  /** Those of them on which node ports are open. */
  readonly nodePort: readonly string[]
}

/** The match on a frontend, and on a node port. */
interface Keys {
  readonly address: readonly nft.Operand[]
  readonly service: readonly nft.Operand[]
  readonly nodePort: readonly nft.Operand[]
}

export function planRules(node: NodeView, addresses: NodeAddresses): TableBase {
  const keys = matchKeys(node.family)
  return {
    comment: 'rules for kube-proxy in mode ipvs',
    sets: Object.values(schemaFor(node.family)),
    chains: [
      ...firewallChains(node.family, keys),
      ...nodePortChains(node, keys),
      ...serviceChains(node, keys),
      ...checkChains(node.family, keys),
      masqueradingChain(node),
      ...hookChains(node),
    ],
    elements: baseElements(node, addresses),
    commonSets: new Set([SETS.clusterIps, SETS.frontendIps, SETS.hairpin, SETS.healthCheckPorts]),
    sharedChains: new Set([CHAINS.serviceShortCircuit, CHAINS.nodePortShortCircuit]),
  }
}

export function matchKeys(family: Family): Keys {
  const address = [nft.destinationAddress(family)]
  const nodePort = [nft.protocol, nft.destinationPort]
  return { address, nodePort, service: [...address, ...nodePort] }
}

/** Source ranges, before anything is translated. */
function firewallChains(family: Family, { service }: Keys): Chain[] {
  return [
    chain(CHAINS.firewallSources, [
      nft.rule([nft.isInRanges([...service, nft.sourceAddress(family)], SETS.firewallAllowed), nft.goBack]),
      nft.rule([nft.drop]),
    ]),
    chain(CHAINS.firewallCheck, [nft.rule([nft.isIn(service, SETS.firewallIps), nft.goto(CHAINS.firewallSources)])]),
  ]
}

/** Whose source will be masqueraded, and who gets around IPVS. */
function serviceChains(node: NodeView, { address, service }: Keys): Chain[] {
  const mark = nft.addMark(node.masqueradeMark)
  return [
    chain(CHAINS.serviceShortCircuit, []),
    chain(CHAINS.localServices, shortCircuits(node, CHAINS.serviceShortCircuit)),
    chain(CHAINS.services, [
      ...clusterIpMasquerade(node),
      nft.rule([nft.isIn(service, SETS.masqueradeServices), mark], 'masquerade externalTrafficPolicy Cluster'),
      nft.rule([nft.isIn(service, SETS.localServices), nft.goto(CHAINS.localServices)]),
      nft.rule([nft.isIn(address, SETS.nodePortIps), nft.jump(CHAINS.nodePorts)]),
    ]),
  ]
}

function nodePortChains(node: NodeView, { nodePort }: Keys): Chain[] {
  return [
    chain(CHAINS.nodePortShortCircuit, []),
    chain(CHAINS.localNodePorts, shortCircuits(node, CHAINS.nodePortShortCircuit)),
    chain(CHAINS.nodePorts, [
      nft.rule([nft.isIn(nodePort, SETS.masqueradeNodePorts), nft.addMark(node.masqueradeMark)]),
      nft.rule([nft.isIn(nodePort, SETS.localNodePorts), nft.goto(CHAINS.localNodePorts)]),
    ]),
  ]
}

function clusterIpMasquerade(node: NodeView): Rule[] {
  const mark = nft.addMark(node.masqueradeMark)
  const isClusterIp = nft.isIn([nft.destinationAddress(node.family)], SETS.clusterIps)
  if (node.masqueradeAll) return [nft.rule([isClusterIp, mark], 'masquerade all clusterIP traffic')]
  const notPod = fromPods(node, false)
  if (notPod === undefined) return []
  return [nft.rule([isClusterIp, notPod, mark], 'masquerade clusterIP traffic from outside cluster')]
}

/**
 * With externalTrafficPolicy Local, pods and the node itself still reach every endpoint. A virtual server has one list of
 * destinations, which is that of the others, so these connections are sent to an endpoint here.
 */
function shortCircuits(node: NodeView, target: string): Rule[] {
  const isPod = fromPods(node, true)
  const fromNode = nft.isLocalAddress('saddr')
  return [
    ...(isPod === undefined ? [] : shortCircuit(isPod, target, 'short-circuit pod traffic')),
    nft.rule([fromNode, nft.addMark(node.masqueradeMark)], 'masquerade local traffic'),
    ...shortCircuit(fromNode, target, 'short-circuit local traffic'),
  ]
}

/**
 * Twice, on purpose: while a commit takes effect, a packet can miss a frontend that moves from one set to another between
 * two rules. The second pass then finds it where it is now.
 */
function shortCircuit(match: nft.Piece, target: string, comment: string): Rule[] {
  return [
    nft.rule([match, nft.jump(target)], comment),
    nft.rule([match, nft.goto(target)], 'again, for changes that come in between'),
  ]
}

/** The local detector's match, or undefined when there is no detector. */
function fromPods(node: NodeView, wanted: boolean): nft.Piece | undefined {
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

/** What reaches these has not been taken by IPVS yet, and may not be. */
function checkChains(family: Family, { address, service, nodePort }: Keys): Chain[] {
  const isNodePortIp = nft.isIn(address, SETS.nodePortIps)
  return [
    chain(CHAINS.hostPortGuard, [
      nft.rule([nft.isIn(service, SETS.services), nft.goBack]),
      nft.rule([nft.isIn(nodePort, SETS.healthCheckPorts), nft.goBack], 'load balancers probe their own address'),
      nft.rule([isIcmp(family), nft.goBack]),
      nft.rule([nft.reject(family)], 'service IPs do not lead to ports of the node'),
    ]),
    chain(CHAINS.endpointsCheck, [
      nft.rule([nft.isIn(service, SETS.rejectServices), nft.reject(family)]),
      nft.rule([nft.isIn(service, SETS.dropServices), nft.drop]),
      nft.rule([isNodePortIp, nft.isIn(nodePort, SETS.rejectNodePorts), nft.reject(family)]),
      nft.rule([isNodePortIp, nft.isIn(nodePort, SETS.dropNodePorts), nft.drop]),
      nft.rule([
        nft.isIn(address, SETS.frontendIps),
        nft.isNotIn(address, SETS.nodeIps),
        nft.goto(CHAINS.hostPortGuard),
      ]),
    ]),
    chain(CHAINS.clusterIpsCheck, [
      nft.rule(
        [nft.isIn(address, SETS.serviceCidrs), nft.isNotIn(address, SETS.frontendIps), nft.drop],
        'Drop traffic to unallocated ClusterIPs',
      ),
    ]),
  ]
}

/** With addresses of their own, service IPs answer to pings, as they always did in this mode. */
function isIcmp(family: Family): nft.Piece {
  const icmp = family === 4 ? { name: 'icmp', value: '\x01' } : { name: 'ipv6-icmp', value: '\x3a' }
  return {
    text: `meta l4proto ${icmp.name}`,
    expressions: [nft.protocol.load(0), { kind: 'cmp', op: 'eq', sreg: 0, value: icmp.value }],
  }
}

function masqueradingChain(node: NodeView): Chain {
  const { family, masqueradeMark } = node
  const tuple = [nft.sourceAddress(family), nft.destinationAddress(family), nft.protocol, nft.destinationPort]
  return chain(CHAINS.masquerading, [
    nft.rule([nft.isMarked(masqueradeMark), nft.flipMark(masqueradeMark), nft.masquerade]),
    // An endpoint that sends to itself through the node can only have meant a service.
    nft.rule([nft.isIn(tuple, SETS.hairpin), nft.masquerade]),
  ])
}

function hookChains({ family, masqueradeMark }: NodeView): Chain[] {
  const onNew = (target: string) => nft.rule([nft.isNewConnection, nft.jump(target)])
  const hook = (type: Hook['type'], at: Hook['hook'], priority: number): Hook => ({ type, hook: at, priority })
  const fromServiceIp = nft.isIn([nft.sourceAddress(family)], SETS.frontendIps)
  return [
    chain(CHAINS.natPostrouting, [nft.rule([nft.jump(CHAINS.masquerading)])], hook('nat', 'postrouting', SRCNAT)),
    chain(CHAINS.filterInput, [onNew(CHAINS.endpointsCheck)], hook('filter', 'input', 0)),
    chain(CHAINS.filterForward, [onNew(CHAINS.clusterIpsCheck)], hook('filter', 'forward', 0)),
    chain(CHAINS.filterOutput, [onNew(CHAINS.clusterIpsCheck)], hook('filter', 'output', 0)),
    chain(CHAINS.filterPreroutingEarly, [onNew(CHAINS.firewallCheck)], hook('filter', 'prerouting', DSTNAT - 10)),
    chain(CHAINS.filterOutputEarly, [onNew(CHAINS.firewallCheck)], hook('filter', 'output', DSTNAT - 10)),
    // What the node itself sends is taken by IPVS in the output hook, at DSTNAT + 2.
    chain(CHAINS.filterOutputPreIpvs, [onNew(CHAINS.endpointsCheck)], hook('filter', 'output', DSTNAT + 1)),
    chain(CHAINS.natPrerouting, [nft.rule([nft.jump(CHAINS.services)])], hook('nat', 'prerouting', DSTNAT)),
    chain(
      CHAINS.natOutput,
      [
        // It has these addresses, so it uses them as its source when it connects to them. Nobody could answer that.
        nft.rule([fromServiceIp, nft.addMark(masqueradeMark)], 'masquerade what the node sends from a service IP'),
        nft.rule([nft.jump(CHAINS.services)]),
      ],
      hook('nat', 'output', DSTNAT),
    ),
  ]
}

function baseElements(node: NodeView, { own, nodePort }: NodeAddresses): SetElements[] {
  const schema = schemaFor(node.family)
  const pods = node.localDetector.kind === 'cidr' ? node.localDetector.cidrs : []
  const ips = (addresses: readonly string[]) => addresses.map((ip) => ({ key: addressField(ip) }))
  const ranges = (cidrs: NodeView['serviceCidrs']) =>
    mergeCidrs(cidrs).map((cidr) => ({ key: cidr.network, keyEnd: cidrEnd(cidr) }))
  return [
    { set: schema.nodeIps, elements: ips(own) },
    { set: schema.nodePortIps, elements: ips(nodePort) },
    { set: schema.podCidrs, elements: ranges(pods) },
    { set: schema.serviceCidrs, elements: ranges(node.serviceCidrs) },
  ]
}

function chain(name: string, rules: readonly Rule[], hook?: Hook): Chain {
  return { name, comment: undefined, hook, rules }
}
