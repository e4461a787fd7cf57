// Counting what goes through a mode's services, while an asker looks.

import type { Family } from '../lib/ip.ts'
import type { Logger } from '../lib/log.ts'
import type { ServicePortView } from '../model/types.ts'
import { COUNTING_TABLE } from '../nftables/counting-table.ts'
import { type Closed, type Counted as CountedByKernel, Counting, endCounting } from '../nftables/open-counting.ts'
import { deleteTables } from '../nftables/watched-tables.ts'
import { addressField, portField, protocolField } from '../nftables/fields.ts'

/** Pairs of a frontend and a backend for which the kernel has room, for each family. */
const MOST_PAIRS = 8192

/** What a proxy that carries connections itself has passed on to a backend, without headers. */
export interface Carried {
  readonly service: string
  readonly protocol: ServicePortView['protocol']
  readonly backend: { readonly address: string; readonly port: number }
  /** Connections, or UDP clients, for which it answered or was taken. */
  readonly begun: number
  /** 0 for TCP, of which the process sees no packets. */
  readonly sentPackets: number
  readonly sentBytes: number
  readonly receivedPackets: number
  readonly receivedBytes: number
  /** It did not answer lately, and gets no clients for a while. */
  readonly isResting: boolean
}

export interface Counted extends CountedByKernel {
  /** By backend, for a mode in which the kernel sees connections end at the proxy: pairs are then of frontends and its doors. */
  readonly carried?: readonly Carried[]
}

/** The kernel counts while it is open. */
export interface TrafficCounter {
  read(views: Iterable<ServicePortView>): Counted
  close(): void
}

/**
 * For every mode in which the kernel translates connections: the connection tracker knows what from and what to. What a proxy
 * that was killed left counting ends here.
 */
export function trafficCounters(families: readonly Family[]): (family: Family) => TrafficCounter {
  endCounting(families)
  return openTrafficCounter
}

/** `--cleanup`: the table is of no mode, and the one in force may be counting while what other modes left goes. */
export function cleanUpCounting(log: Logger): void {
  deleteTables(COUNTING_TABLE, log)
}

function openTrafficCounter(family: Family): TrafficCounter {
  const counting = new Counting(family, MOST_PAIRS)
  return {
    read(views) {
      counting.follow(closedFrontends(views))
      return counting.read()
    },
    close: () => counting.close(),
  }
}

/** Those that refuse, or drop, every client. Where only some sources are refused, their packets are not counted. */
function closedFrontends(views: Iterable<ServicePortView>): Closed {
  const frontends = new Set<string>()
  const ports = new Set<string>()
  for (const view of views) {
    for (const { address, protocol, port, fromPods, fromNode, fromOthers } of view.frontends) {
      if ([fromPods, fromNode, fromOthers].some(({ verdict }) => verdict.kind === 'to')) continue
      const rest = protocolField(protocol) + portField(port)
      if (address === undefined) ports.add(rest)
      else frontends.add(addressField(address) + rest)
    }
  }
  return { frontends, ports }
}
