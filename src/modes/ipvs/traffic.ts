// Reads the counts of virtual servers. IPVS counts always, also while no client asks.

import { IpvsDriver } from '../../ipvs/driver.ts'
import { destinationKey, type DestinationState, serverKey, type ServerState } from '../../ipvs/types.ts'
import type { Family } from '../../lib/ip.ts'
import { addTraffic, NO_TRAFFIC, type TrafficCounts } from '../../traffic/traffic-counts.ts'
import type { CountedPair, TrafficCounter } from '../traffic.ts'

/**
 * `refusals` counts what IPVS never sees: packets to frontends without endpoints. Nothing is switched on in IPVS, so what it has
 * counted before is taken off.
 */
export function openIpvsTraffic(family: Family, refusals: TrafficCounter): TrafficCounter {
  const driver = new IpvsDriver()
  const before = countsOf(driver.read(family))
  return {
    async read(views) {
      const pairs = pairsSince(driver.read(family), before)
      const counted = await refusals.read(views)
      return { pairs, refusals: counted.refusals, total: totalOf(pairs) }
    },
    close() {
      driver.close()
      refusals.close()
    },
  }
}

function countsOf(states: readonly ServerState[]): ReadonlyMap<string, DestinationState> {
  return new Map(
    states.flatMap(({ server, destinations }) =>
      destinations.map((each) => [`${serverKey(server)} ${destinationKey(each)}`, each] as const),
    ),
  )
}

/** Those that had no packet are left out. */
export function pairsSince(
  states: readonly ServerState[],
  before: ReadonlyMap<string, DestinationState>,
): CountedPair[] {
  return states.flatMap(({ server, destinations }) =>
    destinations.flatMap((now): CountedPair[] => {
      const id = `${serverKey(server)} ${destinationKey(now)}`
      const old = before.get(id)
      // One that was removed and added again counts from nothing.
      const base = old !== undefined && old.packetsIn <= now.packetsIn ? old : undefined
      const since = (field: 'connections' | 'packetsIn' | 'packetsOut' | 'bytesIn' | 'bytesOut') =>
        Number(now[field] - (base?.[field] ?? 0n))
      const sentPackets = since('packetsIn')
      if (sentPackets === 0) return []
      return [
        {
          id,
          protocol: server.protocol,
          frontend: { address: server.address, port: server.port },
          backend: { address: now.address, port: now.port },
          begun: since('connections'),
          sentPackets,
          sentBytes: since('bytesIn'),
          receivedPackets: since('packetsOut'),
          receivedBytes: since('bytesOut'),
        },
      ]
    }),
  )
}

function totalOf(pairs: readonly CountedPair[]): TrafficCounts {
  const total = { ...NO_TRAFFIC }
  for (const pair of pairs) addTraffic(total, pair)
  return total
}
