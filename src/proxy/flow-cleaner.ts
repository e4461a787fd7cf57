// Removes UDP flows from the connection tracker that still go where the service no longer does.

import type { Clock } from '../lib/clock.ts'
import type { Family } from '../lib/ip.ts'
import type { Logger } from '../lib/log.ts'
import { goneUdpFrontends, staleAnswerers, staleFlows, type UdpFlow } from '../model/stale-flows.ts'
import type { FrontendAddress, NodeView, ServicePortChange, ServicePortView } from '../model/types.ts'
import type { Metrics } from '../metrics/metrics.ts'

/** The kernel's connection tracker. */
export interface FlowTable<F extends UdpFlow = UdpFlow> {
  /** Only those that are answered by one endpoint (`ip:port`), if it is given. */
  listUdp(family: Family, answerer?: string): readonly F[]
  /** How many there were to delete; flows that ended meanwhile do not count. */
  delete(flows: readonly F[]): number
}

export interface FlowCleanerOptions {
  readonly table: FlowTable
  readonly metrics: Metrics
  readonly clock: Clock
  readonly log: Logger
  /** Every address of this machine, for node ports that are open on all of them. */
  readonly machineAddresses: () => readonly string[]
  /** `ip:port` of what answers the flows of a service port, where that is not the endpoints. */
  readonly targets?: ((view: ServicePortView) => readonly string[]) | undefined
}

/** What a sync was about. */
export interface Synced {
  readonly changes: readonly ServicePortChange[]
  /** All service ports, after a comparison with the kernel. */
  readonly all: Iterable<ServicePortView> | undefined
  /** What that comparison found to be served no longer. */
  readonly gone?: readonly FrontendAddress[] | undefined
}

/** Each is asked for one by one, and the kernel looks at all flows each time, so many are not. */
const FEW_ANSWERERS = 8

export class FlowCleaner {
  readonly #options: FlowCleanerOptions

  constructor(options: FlowCleanerOptions) {
    this.#options = options
  }

  /** Looks at the flows of what changed, or of `all` when given. A failure is logged: the rules are right all the same. */
  clean(node: NodeView, { changes, all, gone = [] }: Synced): void {
    const { table, metrics, clock, log } = this.#options
    const served = all === undefined ? this.#servedChanges(changes) : []
    const answerers = all === undefined ? staleAnswerers(served) : 'any'
    if (answerers !== 'any' && answerers.size === 0) return
    const ipFamily = node.family === 4 ? 'IPv4' : 'IPv6'
    const startMs = clock.monotonicNow()
    try {
      const stale = staleFlows(this.#list(node.family, answerers), {
        servicePorts:
          all === undefined
            ? served.flatMap(({ after }) => after ?? [])
            : Array.from(all, (view) => this.#served(view)),
        gone: [...goneUdpFrontends(changes), ...gone],
        nodePortAddresses: this.#nodePortAddresses(node),
      })
      const deleted = stale.length === 0 ? 0 : table.delete(stale)
      metrics.conntrackDeleted.with(ipFamily).inc(deleted)
      if (deleted > 0) log.v(2)?.info('Removed stale UDP flows', { ipFamily, deleted })
    } catch (error) {
      log.error(error, 'Cannot remove stale UDP flows', { ipFamily })
    }
    metrics.conntrackDuration.with(ipFamily).observe((clock.monotonicNow() - startMs) / 1000)
  }

  #list(family: Family, answerers: ReadonlySet<string> | 'any'): UdpFlow[] {
    const { table } = this.#options
    if (answerers === 'any' || answerers.size > FEW_ANSWERERS) return [...table.listUdp(family)]
    return [...answerers].flatMap((answerer) => table.listUdp(family, answerer))
  }

  #servedChanges(changes: readonly ServicePortChange[]): readonly ServicePortChange[] {
    if (this.#options.targets === undefined) return changes
    return changes.map(({ name, before, after }) => ({
      name,
      before: before && this.#served(before),
      after: after && this.#served(after),
    }))
  }

  /** With what answers its flows, which in some modes are not the endpoints. */
  #served(view: ServicePortView): ServicePortView {
    const { targets } = this.#options
    return targets === undefined ? view : { ...view, serving: targets(view) }
  }

  #nodePortAddresses({ nodePortAddresses }: NodeView): ReadonlySet<string> {
    const addresses = nodePortAddresses.kind === 'only' ? nodePortAddresses.addresses : this.#options.machineAddresses()
    return new Set(addresses)
  }
}
