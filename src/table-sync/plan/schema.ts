// Sets: what keys they have, and those that every mode with an nftables table has.

import type { Family } from '../../lib/ip.ts'
import { makeSet } from '../../nftables/make-set.ts'
import type { FieldType, NftSet } from '../../nftables/types.ts'
import { GUARD_SETS } from './names.ts'

/** What differs by family, made once. */
export function byFamily<T>(make: (family: Family) => T): (family: Family) => T {
  const made = { 4: make(4), 6: make(6) }
  return (family) => made[family]
}

export type GuardSchema = Readonly<Record<keyof typeof GUARD_SETS, NftSet>>

export function addressType(family: Family): FieldType {
  return family === 4 ? 'ipv4_addr' : 'ipv6_addr'
}

/** Keys: a frontend with an address, a node port. */
export function serviceKey(family: Family): readonly FieldType[] {
  return [addressType(family), 'inet_proto', 'inet_service']
}
export const NODE_PORT_KEY: readonly FieldType[] = ['inet_proto', 'inet_service']

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
    unservedServices: makeSet(SETS.unservedServices, service, { comment: 'Frontends without endpoints for a client' }),
    rejectServices: makeSet(SETS.rejectServices, service, { comment: 'Frontends without any endpoint' }),
    unservedNodePorts: makeSet(SETS.unservedNodePorts, NODE_PORT_KEY, {
      comment: 'NodePorts without endpoints for a client',
    }),
    rejectNodePorts: makeSet(SETS.rejectNodePorts, NODE_PORT_KEY, { comment: 'NodePorts without any endpoint' }),
  }
}
