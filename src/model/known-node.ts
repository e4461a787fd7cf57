// A field of a Node that disappears keeps its last value: the object was created again, or several controllers write it.

import type { Node } from '../kube/types.ts'
import { hasNodeIp } from './node-ips.ts'

/** `node`, with the fields that only the one before had, and their names. */
export function keepKnown(before: Node | undefined, node: Node): { readonly node: Node; readonly kept: string[] } {
  const keepsAddresses = before !== undefined && hasNodeIp(before) && !hasNodeIp(node)
  const keepsPodCIDRs = before !== undefined && before.podCIDRs.length > 0 && node.podCIDRs.length === 0
  return {
    node: {
      ...node,
      ...(keepsAddresses && { addresses: before.addresses }),
      ...(keepsPodCIDRs && { podCIDRs: before.podCIDRs }),
    },
    kept: [...(keepsAddresses ? ['addresses'] : []), ...(keepsPodCIDRs ? ['podCIDRs'] : [])],
  }
}
