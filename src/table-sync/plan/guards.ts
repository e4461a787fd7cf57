// What protects the frontends, whichever mode serves them: source ranges before anything is translated, and a clear answer for
// what nothing was translated to. docs/modes/nftables.md has the picture and the reasons.

import { cidrEnd, type Family, mergeCidrs } from '../../lib/ip.ts'
import type { NodeView } from '../../model/types.ts'
import { addressField } from '../../nftables/fields.ts'
import type { SetElements } from '../../nftables/fragment.ts'
import * as nft from '../../nftables/language.ts'
import type { Chain, Rule } from '../../nftables/types.ts'
import { chain, DSTNAT, hookAt, matchKeys, onNewConnections, podRange } from './match.ts'
import { GUARD_CHAINS as CHAINS, GUARD_SETS as SETS } from './names.ts'
import type { GuardSchema } from './schema.ts'

/**
 * Source ranges. To be passed before anything is translated, where the frontend is still to be seen. The rules that let a client in
 * come with the ranges: see sources.ts.
 */
export function firewallChains(family: Family, check: readonly Rule[] = [firewallCheckRule(family)]): Chain[] {
  return [chain(CHAINS.firewallSources, [nft.rule([nft.drop])]), chain(CHAINS.firewallCheck, check)]
}

export function firewallCheckRule(family: Family): Rule {
  const { service } = matchKeys(family)
  return nft.rule([nft.isIn(service, SETS.firewallIps), nft.goto(CHAINS.firewallSources)])
}

/** What reaches these was not translated. The given rules are a mode's own for what may be a node port. */
export function checkChains(node: NodeView, nodePorts: readonly Rule[] = []): Chain[] {
  const { family } = node
  const { service, nodePort } = matchKeys(family)
  const daddr = [nft.destinationAddress(family)]
  const dropUnallocated = nft.rule(
    [nft.isIn(daddr, SETS.serviceCidrs), nft.drop],
    'Drop traffic to unallocated ClusterIPs',
  )
  const guard = node.nodePortAddresses.kind === 'only' ? nft.isIn(daddr, SETS.nodePortIps) : nft.isNotLoopback(family)
  return [
    ...refusals(family),
    chain(CHAINS.serviceEndpointsCheck, [
      nft.rule([nft.isIn(service, SETS.unservedServices), nft.goto(CHAINS.refuseService)]),
    ]),
    chain(CHAINS.nodePortEndpointsCheck, [
      nft.rule([nft.isIn(nodePort, SETS.unservedNodePorts), guard, nft.goto(CHAINS.refuseNodePort)]),
      ...nodePorts,
    ]),
    chain(CHAINS.clusterIpsCheck, [
      nft.rule([nft.isIn(daddr, SETS.clusterIps), nft.reject(family)], 'Reject traffic to invalid ports of ClusterIPs'),
      ...(node.serviceCidrs.length === 0 ? [] : [dropUnallocated]),
    ]),
  ]
}

/**
 * What a client hears that cannot be served. Drops what is in neither set any more: a packet that is under way while a frontend
 * gets its first endpoint is sent again, and then served.
 */
export function refusals(family: Family): Chain[] {
  const { service, nodePort } = matchKeys(family)
  const refuse = (key: readonly nft.Operand[], rejected: string) => [
    nft.rule([nft.isIn(key, rejected), nft.reject(family)]),
    nft.rule([nft.drop]),
  ]
  return [
    chain(CHAINS.refuseService, refuse(service, SETS.rejectServices)),
    chain(CHAINS.refuseNodePort, refuse(nodePort, SETS.rejectNodePorts)),
  ]
}

/** The further rules of a mode for the first packet of a connection: to this machine itself, and to wherever. */
interface FurtherRules {
  readonly incoming?: readonly Rule[]
  readonly all?: readonly Rule[]
}

/** The base chains that lead to the checks. A packet of a connection that is known pays for one look at its state. */
export function guardHooks({ incoming = [], all = [] }: FurtherRules = {}): Chain[] {
  const { serviceEndpointsCheck, nodePortEndpointsCheck, clusterIpsCheck } = CHAINS
  const to = (target: string) => nft.rule([nft.jump(target)])
  const outgoing = [onNewConnections(CHAINS.outgoingChecks)]
  return [
    chain(CHAINS.incomingChecks, [...all, to(nodePortEndpointsCheck), to(serviceEndpointsCheck), ...incoming]),
    chain(CHAINS.outgoingChecks, [...all, to(serviceEndpointsCheck), to(clusterIpsCheck)]),
    chain(CHAINS.filterInput, [onNewConnections(CHAINS.incomingChecks)], hookAt('filter', 'input', 0)),
    chain(CHAINS.filterForward, outgoing, hookAt('filter', 'forward', 0)),
    chain(CHAINS.filterOutput, outgoing, hookAt('filter', 'output', 0)),
  ]
}

/**
 * The base chains that lead to what translates: for the first packet of a connection alone, as all chains for NAT. Source
 * ranges come first, in the same chain: in hooks of their own, every packet of the machine would pass them.
 */
export function natHooks(services: string): Chain[] {
  const rules = [nft.rule([nft.jump(CHAINS.firewallCheck)]), nft.rule([nft.jump(services)])]
  return [
    chain(CHAINS.natPrerouting, rules, hookAt('nat', 'prerouting', DSTNAT)),
    chain(CHAINS.natOutput, rules, hookAt('nat', 'output', DSTNAT)),
  ]
}

/** The elements that follow from the node and not from services. */
export function guardElements(node: NodeView, schema: GuardSchema): SetElements[] {
  const { nodePortAddresses, localDetector } = node
  const ips = nodePortAddresses.kind === 'only' ? nodePortAddresses.addresses : []
  const isSet = localDetector.kind === 'cidr' && podRange(localDetector.cidrs) === undefined
  const pods = isSet ? localDetector.cidrs : []
  const ranges = (cidrs: NodeView['serviceCidrs']) =>
    mergeCidrs(cidrs).map((cidr) => ({ key: cidr.network, keyEnd: cidrEnd(cidr) }))
  return [
    { set: schema.nodePortIps, elements: ips.map((ip) => ({ key: addressField(ip) })) },
    { set: schema.podCidrs, elements: ranges(pods) },
    { set: schema.serviceCidrs, elements: ranges(node.serviceCidrs) },
  ]
}
