// Addresses for pods, from the ranges of their nodes.

import { IpRange } from '../apiserver/allocation/ip-range.ts'
import type { Node } from '../apiserver/objects/node.ts'

/** The first address of the range is the node's own. */
const reserved = 1

/**
 * One address of each of the node's ranges. Like a real network plugin it goes round: an address that was just freed is
 * not given out again soon, so that no client mistakes a new pod for an old one.
 */
export class PodAddresses {
  readonly #last = new Map<string, number>()
  readonly #taken = new Set<string>()

  /** Undefined when a range is full. */
  pick(node: Node): string[] | undefined {
    const ips = (node.spec.podCIDRs ?? []).map((cidr) => this.#pickFrom(cidr))
    if (ips.includes(undefined)) return undefined
    const picked = ips.filter((ip) => ip !== undefined)
    for (const ip of picked) this.#taken.add(ip)
    return picked
  }

  release(ips: readonly string[]): void {
    for (const ip of ips) this.#taken.delete(ip)
  }

  #pickFrom(cidr: string): string | undefined {
    const range = IpRange.parse(cidr)
    const size = range.size - reserved
    const start = this.#last.get(cidr) ?? -1
    for (let step = 1; step <= size; step++) {
      const offset = (start + step) % size
      const ip = range.at(reserved + offset)
      if (this.#taken.has(ip)) continue
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
