// The addresses that this node is known by.

import type { Node } from '../kube/types.ts'
import { familyOf, isLoopback, isUnspecified, parseIp } from '../lib/ip.ts'
import type { Family } from '../lib/ip.ts'
import { parseAddress } from './address.ts'
import type { Address } from './address.ts'

export interface NodeIps {
  /** The family to serve when only one can be served. */
  readonly primaryFamily: Family
  /** Canonical. Loopback when nothing better is known. */
  readonly ips: Readonly<Record<Family, string>>
}

/**
 * A bind address other than 0.0.0.0 and :: is the node's address of its family. Otherwise it is the first InternalIP of
 * the Node, or the first ExternalIP when there is none; the other family's is the first one of that family.
 */
export function planNodeIps(node: Pick<Node, 'addresses'> | undefined, bindAddress: string): NodeIps {
  const found = node === undefined ? [] : addressesOf(node)
  const bound = parseAddress(bindAddress)
  if (bound !== undefined && !isUnspecified(bound.bytes)) found.unshift(bound)
  const firstOf = (family: Family) => found.find(({ bytes }) => familyOf(bytes) === family)?.text
  const [first] = found
  return {
    primaryFamily: first === undefined ? 4 : familyOf(first.bytes),
    ips: { 4: firstOf(4) ?? '127.0.0.1', 6: firstOf(6) ?? '::1' },
  }
}

/** Whether the Node names any address by which it can be reached. */
export function hasNodeIp(node: Pick<Node, 'addresses'>): boolean {
  return addressesOf(node).length > 0
}

/** What is best first. */
function addressesOf(node: Pick<Node, 'addresses'>): Address[] {
  const found: Address[] = []
  for (const type of ['InternalIP', 'ExternalIP']) {
    for (const { type: actual, address } of node.addresses) {
      const parsed = actual === type ? parseAddress(address) : undefined
      if (parsed !== undefined) found.push(parsed)
    }
  }
  return found
}

/** Whether a node address is only the stand-in for one that is not known. */
export function isUnknown(nodeIp: string): boolean {
  const bytes = parseIp(nodeIp)
  return bytes === undefined || isLoopback(bytes)
}
