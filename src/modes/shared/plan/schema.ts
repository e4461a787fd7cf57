// Sets: what keys they have, and those that every mode with an nftables table has.

import type { Family } from '../../../lib/ip.ts'
import { makeSet } from '../../../nftables/make-set.ts'
import type { FieldType, NftSet } from '../../../nftables/types.ts'
import { GUARD_SETS } from './names.ts'

export type GuardSchema = Readonly<Record<keyof typeof GUARD_SETS, NftSet>>

export function addressType(family: Family): FieldType {
  return family === 4 ? 'ipv4_addr' : 'ipv6_addr'
}

/** Keys: a frontend with an address, a node port. */
export function serviceKey(family: Family): readonly FieldType[] {
  return [addressType(family), 'inet_proto', 'inet_service']
}
export const NODE_PORT_KEY: readonly FieldType[] = ['inet_proto', 'inet_service']

/**
 * One for each protocol rather than one with the protocol in its key: of a one-byte field in a set of ranges nft makes an
 * expression (byteorder) that kernels since 6.12.y refuse, nft's own included.
 */
function allowedSources(family: Family, name: string): NftSet {
  const address = addressType(family)
  return makeSet(name, [address, 'inet_service', address], {
    interval: true,
    comment: 'Sources that loadBalancerSourceRanges allow',
  })
}

export function guardSchema(family: Family): GuardSchema {
  const address = addressType(family)
  const service = serviceKey(family)
  const SETS = GUARD_SETS
  return {
    clusterIps: makeSet(SETS.clusterIps, [address], { comment: 'Active ClusterIPs' }),
    nodePortIps: makeSet(SETS.nodePortIps, [address], { comment: 'IPs that accept NodePort traffic' }),
    podCidrs: makeSet(SETS.podCidrs, [address], { interval: true, comment: 'Sources that are pods' }),
    serviceCidrs: makeSet(SETS.serviceCidrs, [address], { interval: true, comment: 'Where ClusterIPs are taken from' }),
    firewallIps: makeSet(SETS.firewallIps, service, { comment: 'Frontends with loadBalancerSourceRanges' }),
    firewallAllowedTCP: allowedSources(family, SETS.firewallAllowedTCP),
    firewallAllowedUDP: allowedSources(family, SETS.firewallAllowedUDP),
    firewallAllowedSCTP: allowedSources(family, SETS.firewallAllowedSCTP),
    unservedServices: makeSet(SETS.unservedServices, service, { comment: 'Frontends without endpoints for a client' }),
    rejectServices: makeSet(SETS.rejectServices, service, { comment: 'Frontends without any endpoint' }),
    unservedNodePorts: makeSet(SETS.unservedNodePorts, NODE_PORT_KEY, {
      comment: 'NodePorts without endpoints for a client',
    }),
    rejectNodePorts: makeSet(SETS.rejectNodePorts, NODE_PORT_KEY, { comment: 'NodePorts without any endpoint' }),
  }
}
