// Counts the traffic of services while a client asks.

import { cidrEnd, type Family, mergeCidrs, type Bytes, asBytes } from '../lib/ip.ts'
import type { Logger } from '../lib/log.ts'
import { nextTurn } from '../lib/next-turn.ts'
import type { TrafficCounts } from '../traffic/traffic-counts.ts'
import type { ServicePortView } from '../model/types.ts'
import { COUNTING_TABLE } from '../traffic/counting-table.ts'
import { type Closed, Counting, endCounting, type SourceRange } from '../traffic/open-counting.ts'
import type { CountedTable } from '../traffic/read-counters.ts'
import { deleteTables } from '../nftables/watched-tables.ts'
import { addOverLimit } from './over-limit.ts'
import { addressField, portField, protocolField } from '../nftables/fields.ts'

export type { CountedPair, CountedRefusal } from '../traffic/read-counters.ts'

/** Pairs of a frontend and a backend for which the kernel has room, for each family. */
const MOST_PAIRS = 8192

/** What a proxy that carries connections itself has passed on to a backend, without headers. */
export interface Carried extends TrafficCounts {
  readonly service: string
  readonly protocol: ServicePortView['protocol']
  readonly backend: { readonly address: string; readonly port: number }
  /** Connections, or UDP clients, for which it answered or was taken. */
  readonly begun: number
  /** 0 for TCP, of which the process sees no packets. */
  readonly sentPackets: number
  /** It did not answer lately, and gets no clients for a while. */
  readonly isResting: boolean
}

export interface Counted extends CountedTable {
  /** By backend, for a mode in which the kernel sees connections end at the proxy: pairs are then of frontends and its listeners. */
  readonly carried?: readonly Carried[]
}

/** The kernel counts while it is open. */
export interface TrafficCounter {
  /** Takes several turns of the event loop; is not to be called again before it is done. Rejects when it is closed meanwhile. */
  read(views: Iterable<ServicePortView>): Promise<Counted>
  close(): void
}

/**
 * For every mode in which the kernel translates connections: the connection tracker knows what from and what to. What a proxy
 * that was killed left counting ends here. `limits`: the table of the mode, where it counts what is over limits.
 */
export function trafficCounters(
  families: readonly Family[],
  limits?: { readonly table: string },
): (family: Family) => TrafficCounter {
  endCounting(families)
  return (family) => openTrafficCounter(family, limits?.table)
}

/** `--cleanup`: the table is of no mode, and the one in force may be counting while what other modes left goes. */
export function cleanUpCounting(log: Logger): void {
  deleteTables(COUNTING_TABLE, log)
}

function openTrafficCounter(family: Family, table: string | undefined): TrafficCounter {
  const counting = new Counting(family, MOST_PAIRS)
  return {
    async read(iterable) {
      const views = [...iterable]
      counting.follow(closedFrontends(views))
      await nextTurn()
      const counted = await counting.read()
      if (table === undefined) return counted
      return { ...counted, refusals: addOverLimit(counted.refusals, { table, family, views }) }
    },
    close: () => counting.close(),
  }
}

/** Frontends that refuse, or drop, any client: all of them, those over a limit, those outside without local endpoints, those from elsewhere than allowed. */
function closedFrontends(views: Iterable<ServicePortView>): Closed {
  const frontends = new Set<Bytes>()
  const ports = new Set<Bytes>()
  const guarded = new Map<Bytes, SourceRange[]>()
  for (const view of views) {
    for (const { address, protocol, port, fromPods, fromNode, fromOthers, allowedSources, limits } of view.frontends) {
      const rest = protocolField(protocol) + portField(port)
      const key = asBytes(address === undefined ? rest : addressField(address) + rest)
      if (address !== undefined && allowedSources !== undefined) {
        const ranges = mergeCidrs(allowedSources).map((cidr) => ({ first: cidr.network, last: cidrEnd(cidr) }))
        guarded.set(key, ranges)
      }
      if (limits === undefined && [fromPods, fromNode, fromOthers].every(({ verdict }) => verdict.kind === 'to'))
        continue
      const closed = address === undefined ? ports : frontends
      closed.add(key)
    }
  }
  return { frontends, ports, guarded }
}
