// What protects the frontends, whichever mode serves them: source ranges before anything is translated, and a clear answer for
// what nothing was translated to. docs/modes/nftables.md has the picture and the reasons.

import { cidrEnd, type Family, mergeCidrs } from '../../../lib/ip.ts'
import type { NodeView } from '../../../model/types.ts'
import { addressField } from '../../../nftables/fields.ts'
import type { SetElements } from '../../../nftables/fragment.ts'
import * as nft from '../../../nftables/language.ts'
import type { Chain, Rule } from '../../../nftables/types.ts'
import { chain, DSTNAT, hookAt, matchKeys, onNewConnections } from './match.ts'
import { GUARD_CHAINS as CHAINS, GUARD_SETS as SETS } from './names.ts'
import type { GuardSchema } from './schema.ts'

/** Source ranges, before anything is translated. */
export function firewallChains(family: Family): Chain[] {
  const { service } = matchKeys(family)
  const connection = [nft.destinationAddress(family), nft.destinationPort, nft.sourceAddress(family)]
  return [
    chain(CHAINS.firewallSources, [
      ...(['TCP', 'UDP', 'SCTP'] as const).map((protocol) =>
        nft.rule([nft.isProtocol(protocol), nft.isIn(connection, SETS[`firewallAllowed${protocol}`]), nft.goBack]),
      ),
      nft.rule([nft.drop]),
    ]),
    chain(CHAINS.firewallCheck, [nft.rule([nft.isIn(service, SETS.firewallIps), nft.goto(CHAINS.firewallSources)])]),
  ]
}

/** What reaches these was not translated. */
export function checkChains(node: NodeView): Chain[] {
  const { family } = node
  const { service, nodePort } = matchKeys(family)
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

/** The base chains that lead to the checks. `input` are further rules for what this machine itself is asked. */
export function guardHooks(input: readonly Rule[] = []): Chain[] {
  const { serviceEndpointsCheck, nodePortEndpointsCheck, clusterIpsCheck, firewallCheck } = CHAINS
  const checks = [onNewConnections(serviceEndpointsCheck), onNewConnections(clusterIpsCheck)]
  const firewall = [onNewConnections(firewallCheck)]
  return [
    chain(
      CHAINS.filterInput,
      [onNewConnections(nodePortEndpointsCheck), onNewConnections(serviceEndpointsCheck), ...input],
      hookAt('filter', 'input', 0),
    ),
    chain(CHAINS.filterForward, checks, hookAt('filter', 'forward', 0)),
    chain(CHAINS.filterOutput, checks, hookAt('filter', 'output', 0)),
    chain(CHAINS.filterPreroutingPreDnat, firewall, hookAt('filter', 'prerouting', DSTNAT - 10)),
    chain(CHAINS.filterOutputPreDnat, firewall, hookAt('filter', 'output', DSTNAT - 10)),
  ]
}

/** The elements that follow from the node and not from services. */
export function guardElements(node: NodeView, schema: GuardSchema): SetElements[] {
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
