// Whether the proxy keeps up: changes that arrived are in the kernel within a time limit. See proxy_health.go upstream.

import type { Clock } from '../lib/clock.ts'

export type IpFamilyName = 'IPv4' | 'IPv6'

/** What the health of this node depends on, besides the proxy. */
export interface NodeCondition {
  readonly deleting: boolean
  /** The keys of its taints. */
  readonly taints: readonly string[]
}

/** A moment of one family's proxier. */
export interface FamilyHealth {
  /** Milliseconds since 1970. */
  readonly lastUpdatedMs: number
  readonly healthy: boolean
}

export interface Health {
  /** Whether every family keeps up. */
  readonly healthy: boolean
  readonly nowMs: number
  /** The latest update of any family; undefined before the first. */
  readonly lastUpdatedMs: number | undefined
  /** The families that have been programmed at least once. */
  readonly families: ReadonlyMap<IpFamilyName, FamilyHealth>
}

/** The taint by which the cluster autoscaler announces that it will delete a node. */
export const toBeDeletedTaint = 'ToBeDeletedByClusterAutoscaler'

export interface ProxyHealthOptions {
  readonly clock: Clock
  /** How long a change may wait to be programmed: twice the sync period. */
  readonly timeoutMs: number
}

/** Follows what was queued and what was programmed, per IP family, and what the API says about this node. */
export class ProxyHealth {
  readonly #clock: Clock
  #timeoutMs: number
  #node: NodeCondition | undefined
  readonly #updatedMs = new Map<IpFamilyName, number>()
  /** When the oldest change came that is not programmed yet, on the monotonic clock: a jump of the other is no delay. */
  readonly #waitingSinceMs = new Map<IpFamilyName, number>()

  constructor(options: ProxyHealthOptions) {
    this.#clock = options.clock
    this.#timeoutMs = options.timeoutMs
  }

  setTimeoutMs(timeoutMs: number): void {
    this.#timeoutMs = timeoutMs
  }

  /** Our Node as the API has it; undefined when it has none. */
  setNode(node: NodeCondition | undefined): void {
    this.#node = node
  }

  /** A change has arrived that the family's rules have to follow. */
  queued(family: IpFamilyName): void {
    if (!this.#waitingSinceMs.has(family)) this.#waitingSinceMs.set(family, this.#clock.monotonicNow())
  }

  /** The family's rules say what the API says. */
  updated(family: IpFamilyName): void {
    this.#waitingSinceMs.delete(family)
    this.#updatedMs.set(family, this.#clock.now())
  }

  /**
   * The health of the proxy, without that of the node. As upstream, a family that has never been programmed does not
   * count: a proxy that starts is healthy.
   */
  health(): Health {
    const families = new Map<IpFamilyName, FamilyHealth>()
    let healthy = true
    let lastUpdatedMs: number | undefined
    for (const family of ['IPv4', 'IPv6'] as const) {
      const updatedMs = this.#updatedMs.get(family)
      if (updatedMs === undefined) continue
      const late = this.#isLate(family)
      families.set(family, { lastUpdatedMs: updatedMs, healthy: !late })
      if (late) healthy = false
      lastUpdatedMs = Math.max(updatedMs, lastUpdatedMs ?? updatedMs)
    }
    return { healthy, nowMs: this.#clock.now(), lastUpdatedMs, families }
  }

  /** Whether load balancers may send connections here: the node is known and not about to be deleted. */
  nodeEligible(): boolean {
    return this.#node !== undefined && !this.#node.deleting && !this.#node.taints.includes(toBeDeletedTaint)
  }

  #isLate(family: IpFamilyName): boolean {
    const sinceMs = this.#waitingSinceMs.get(family)
    return sinceMs !== undefined && this.#clock.monotonicNow() - sinceMs >= this.#timeoutMs
  }
}
