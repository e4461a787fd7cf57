// The rules around IPVS: every one there is, apart from one per number of endpoints in use by short circuits.
// docs/modes/ipvs.md has the picture and the reasons.

import { type Family, asBytes } from '../../../lib/ip.ts'
import type { NodeView } from '../../../model/types.ts'
import { addressField } from '../../../nftables/fields.ts'
import type { SetElements, TableBase } from '../../../nftables/fragment.ts'
import * as nft from '../../../nftables/language.ts'
import type { Chain, Rule } from '../../../nftables/types.ts'
import { firewallChains, guardElements, refusals } from '../../../table-sync/plan/guards.ts'
import {
  chain,
  clusterIpMasquerade,
  DSTNAT,
  fromPods,
  hookAt,
  matchKeys,
  onNewConnections,
  SRCNAT,
} from '../../../table-sync/plan/match.ts'
import { CHAINS, SETS } from './names.ts'
import { schemaFor } from './schema.ts'

/** Addresses of the machine, which the rules depend on and the model does not know. Canonical. */
export interface NodeAddresses {
  /** All that it has, but for those that the mode itself has put on kube-ipvs0. */
  readonly own: readonly string[]
  /** Those of them on which node ports are open. */
  readonly nodePort: readonly string[]
}

export function planRules(node: NodeView, addresses: NodeAddresses): TableBase {
  return {
    comment: 'rules for kube-proxy in mode ipvs',
    sets: Object.values(schemaFor(node.family)),
    chains: [
      ...firewallChains(node.family),
      ...nodePortChains(node),
      ...serviceChains(node),
      ...checkChains(node.family),
      masqueradingChain(node),
      ...hookChains(node),
    ],
    elements: baseElements(node, addresses),
    commonSets: new Set([SETS.clusterIps, SETS.frontendIps, SETS.hairpin, SETS.healthCheckPorts]),
    sharedChains: new Set([CHAINS.firewallSources, CHAINS.serviceShortCircuit, CHAINS.nodePortShortCircuit]),
  }
}

/** Which connections will be masqueraded, and which are sent around IPVS. */
function serviceChains(node: NodeView): Chain[] {
  const { service } = matchKeys(node.family)
  const mark = nft.addMark(node.masqueradeMark)
  const isNodePortIp = nft.isIn([nft.destinationAddress(node.family)], SETS.nodePortIps)
  return [
    chain(CHAINS.serviceShortCircuit, []),
    chain(CHAINS.localServices, shortCircuits(node, CHAINS.serviceShortCircuit)),
    chain(CHAINS.services, [
      ...clusterIpMasquerade(node),
      nft.rule([nft.isIn(service, SETS.masqueradeServices), mark], 'masquerade externalTrafficPolicy Cluster'),
      nft.rule([nft.isIn(service, SETS.localServices), nft.goto(CHAINS.localServices)]),
      nft.rule([isNodePortIp, nft.isNotIn(service, SETS.services), nft.jump(CHAINS.nodePorts)]),
    ]),
  ]
}

function nodePortChains(node: NodeView): Chain[] {
  const { nodePort } = matchKeys(node.family)
  return [
    chain(CHAINS.nodePortShortCircuit, []),
    chain(CHAINS.localNodePorts, shortCircuits(node, CHAINS.nodePortShortCircuit)),
    chain(CHAINS.nodePorts, [
      nft.rule([nft.isIn(nodePort, SETS.masqueradeNodePorts), nft.addMark(node.masqueradeMark)]),
      nft.rule([nft.isIn(nodePort, SETS.localNodePorts), nft.goto(CHAINS.localNodePorts)]),
    ]),
  ]
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

/** What reaches these has not been taken by IPVS yet, and may not be. */
function checkChains(family: Family): Chain[] {
  const { service, nodePort } = matchKeys(family)
  const address = [nft.destinationAddress(family)]
  const isNodePortIp = nft.isIn(address, SETS.nodePortIps)
  const isFrontendIp = nft.isIn(address, SETS.frontendIps)
  return [
    ...refusals(family),
    chain(CHAINS.hostPortGuard, [
      nft.rule([nft.isIn(service, SETS.services), nft.goBack]),
      nft.rule([nft.isIn(nodePort, SETS.healthCheckPorts), nft.goBack], 'load balancers probe their own address'),
      nft.rule([isIcmp(family), nft.goBack]),
      nft.rule([nft.reject(family)], 'service IPs do not lead to ports of the node'),
    ]),
    chain(CHAINS.serviceEndpointsCheck, [
      nft.rule([nft.isIn(service, SETS.unservedServices), nft.goto(CHAINS.refuseService)]),
      nft.rule([isFrontendIp, nft.isNotIn(address, SETS.nodeIps), nft.goto(CHAINS.hostPortGuard)]),
    ]),
    chain(CHAINS.nodePortEndpointsCheck, [
      // An external address may be the node's own, and its port a node port: then IPVS serves the address.
      nft.rule([nft.isIn(service, SETS.services), nft.goBack]),
      nft.rule([nft.isIn(nodePort, SETS.unservedNodePorts), isNodePortIp, nft.goto(CHAINS.refuseNodePort)]),
    ]),
    chain(CHAINS.clusterIpsCheck, [
      nft.rule(
        [nft.isIn(address, SETS.serviceCidrs), nft.isNotIn(address, SETS.frontendIps), nft.drop],
        'Drop traffic to unallocated ClusterIPs',
      ),
    ]),
  ]
}

/** Service IPs are addresses of the node, so they answer to pings, as they always did in this mode. */
function isIcmp(family: Family): nft.Piece {
  const icmp = family === 4 ? { name: 'icmp', value: '\x01' } : { name: 'ipv6-icmp', value: '\x3a' }
  return {
    text: `meta l4proto ${icmp.name}`,
    expressions: [nft.protocol.load(0), { kind: 'cmp', op: 'eq', sreg: 0, value: asBytes(icmp.value) }],
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
  const fromServiceIp = nft.isIn([nft.sourceAddress(family)], SETS.frontendIps)
  const toServices = nft.rule([nft.jump(CHAINS.services)])
  const firewall = [onNewConnections(CHAINS.firewallCheck)]
  const endpoints = [onNewConnections(CHAINS.nodePortEndpointsCheck), onNewConnections(CHAINS.serviceEndpointsCheck)]
  const clusterIps = [onNewConnections(CHAINS.clusterIpsCheck)]
  return [
    chain(CHAINS.natPostrouting, [nft.rule([nft.jump(CHAINS.masquerading)])], hookAt('nat', 'postrouting', SRCNAT)),
    chain(CHAINS.filterInput, endpoints, hookAt('filter', 'input', 0)),
    chain(CHAINS.filterForward, clusterIps, hookAt('filter', 'forward', 0)),
    chain(CHAINS.filterOutput, clusterIps, hookAt('filter', 'output', 0)),
    chain(CHAINS.filterPreroutingPreDnat, firewall, hookAt('filter', 'prerouting', DSTNAT - 10)),
    chain(CHAINS.filterOutputPreDnat, firewall, hookAt('filter', 'output', DSTNAT - 10)),
    // What the node itself sends is taken by IPVS in the output hook, at DSTNAT + 2.
    chain(CHAINS.filterOutputPreIpvs, endpoints, hookAt('filter', 'output', DSTNAT + 1)),
    chain(CHAINS.natPrerouting, [toServices], hookAt('nat', 'prerouting', DSTNAT)),
    chain(
      CHAINS.natOutput,
      [
        // It has these addresses, so it uses them as its source when it connects to them. An endpoint's answer would not leave its own host.
        nft.rule([fromServiceIp, nft.addMark(masqueradeMark)], 'masquerade what the node sends from a service IP'),
        toServices,
      ],
      hookAt('nat', 'output', DSTNAT),
    ),
  ]
}

function baseElements(node: NodeView, { own, nodePort }: NodeAddresses): SetElements[] {
  const schema = schemaFor(node.family)
  const nodeIps = own.map((ip) => ({ key: addressField(ip) }))
  // Node ports are open where they have virtual servers: on addresses that exist.
  const open = { ...node, nodePortAddresses: { kind: 'only', addresses: nodePort } } as const
  return [{ set: schema.nodeIps, elements: nodeIps }, ...guardElements(open, schema)]
}
