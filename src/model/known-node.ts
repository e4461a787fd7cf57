// What is known of a Node stays known when the Node does not say it any more: the object was made anew, or is being written by several.

import type { Node } from '../kube/types.ts'
import { hasNodeIp } from './node-ips.ts'

/** `node`, with what only the one before said, and what that is. */
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
