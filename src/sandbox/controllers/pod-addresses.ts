// Addresses for pods, from the ranges of their nodes. Pure.

import { IpRange } from '../apiserver/allocation/ip-range.ts'
import { isTerminal } from '../apiserver/objects/pod.ts'
import type { Node } from '../apiserver/objects/node.ts'
import type { Pod } from '../apiserver/objects/pod.ts'

/** The first address of the range is the node's own. */
const reserved = 1

/**
 * One address of each of the node's ranges. Like a real network plugin it goes round: an address that was just freed is
 * not given out again soon, so that nobody mistakes a new pod for an old one. `last` is the one given out last, per range.
 */
export class PodAddresses {
  readonly #last = new Map<string, number>()

  /** Undefined when a range is full. */
  pick(node: Node, pods: readonly Pod[]): string[] | undefined {
    const taken = new Set(
      pods
        .filter((pod) => pod.spec.nodeName === node.metadata.name && !isTerminal(pod))
        .flatMap(({ status }) => (status.podIPs ?? []).map(({ ip }) => ip)),
    )
    const ips = (node.spec.podCIDRs ?? []).map((cidr) => this.#pickFrom(cidr, taken))
    return ips.includes(undefined) ? undefined : ips.filter((ip) => ip !== undefined)
  }

  #pickFrom(cidr: string, taken: ReadonlySet<string>): string | undefined {
    const range = IpRange.parse(cidr)
    const size = range.size - reserved
    const start = this.#last.get(cidr) ?? -1
    for (let step = 1; step <= Math.min(size, taken.size + 1); step++) {
      const offset = (start + step) % size
      const ip = range.at(reserved + offset)
      if (taken.has(ip)) continue
      this.#last.set(cidr, offset)
      return ip
    }
    return undefined
  }
}

/** The addresses of a pod on the host's network: the node's. */
export function hostAddresses({ status }: Node): string[] {
  return (status.addresses ?? []).filter(({ type }) => type === 'InternalIP').map(({ address }) => address)
}
