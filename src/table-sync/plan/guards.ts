// The rules that protect the frontends, whichever mode serves them. They check source ranges before translation, and reject or drop
// packets to frontends that nothing translated. docs/modes/nftables.md has the picture and the reasons.

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
 * Checks source ranges. Packets pass these chains before translation, while they still carry the address of the frontend. The rules
 * that accept a client come with the ranges: see sources.ts.
 */
export function firewallChains(family: Family, check: readonly Rule[] = [firewallCheckRule(family)]): Chain[] {
  return [chain(CHAINS.firewallSources, [nft.rule([nft.drop])]), chain(CHAINS.firewallCheck, check)]
}

export function firewallCheckRule(family: Family): Rule {
  const { service } = matchKeys(family)
  return nft.rule([nft.isIn(service, SETS.firewallIps), nft.goto(CHAINS.firewallSources)])
}

/** Packets that reach these chains were not translated. `nodePorts`: the mode's own rules for packets that may be to a node port. */
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
 * Rejects or drops packets of clients that have no endpoint. A packet whose frontend has just got its first endpoint is in neither
 * set any more: it is dropped, the client sends it again, and then it is served.
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

/** Rules that a mode adds for the first packet of a connection. `incoming`: to this machine; `all`: to any destination. */
interface FurtherRules {
  readonly incoming?: readonly Rule[]
  readonly all?: readonly Rule[]
}

/** The base chains that lead to the checks. Packets of established connections only pay for one match on their state. */
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
 * The base chains that lead to the translating rules. As in all NAT chains, only the first packet of a connection passes them. The
 * check of source ranges comes first, in the same chain: in a hook of its own, every packet of the machine would pass it. `others`:
 * rules for what is not sent to an endpoint.
 */
export function natHooks(services: string, others: readonly Rule[] = []): Chain[] {
  const rules = [nft.rule([nft.jump(CHAINS.firewallCheck)]), nft.rule([nft.jump(services)]), ...others]
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
