// What goes through virtual servers: IPVS counts by itself, whether an asker looks or not.

import { IpvsDriver } from '../../ipvs/driver.ts'
import { destinationKey, type DestinationState, serverKey, type ServerState } from '../../ipvs/types.ts'
import type { Family } from '../../lib/ip.ts'
import type { Counted, TrafficCounter } from '../traffic.ts'

type Pair = Counted['pairs'][number]

/**
 * `refusals` counts what IPVS never sees: packets to frontends without endpoints. Nothing is switched on in IPVS, so what it has
 * counted before is taken off.
 */
export function openIpvsTraffic(family: Family, refusals: TrafficCounter): TrafficCounter {
  const driver = new IpvsDriver()
  const before = countsOf(driver.read(family))
  return {
    read(views) {
      const pairs = pairsSince(driver.read(family), before)
      const counted = refusals.read(views)
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
export function pairsSince(states: readonly ServerState[], before: ReadonlyMap<string, DestinationState>): Pair[] {
  return states.flatMap(({ server, destinations }) =>
    destinations.flatMap((now): Pair[] => {
      const old = before.get(`${serverKey(server)} ${destinationKey(now)}`)
      // One that was removed and added again counts from nothing.
      const base = old !== undefined && old.packetsIn <= now.packetsIn ? old : undefined
      const since = (field: 'connections' | 'packetsIn' | 'packetsOut' | 'bytesIn' | 'bytesOut') =>
        Number(now[field] - (base?.[field] ?? 0n))
      const sent = { packets: since('packetsIn'), bytes: since('bytesIn') }
      if (sent.packets === 0) return []
      return [
        {
          protocol: server.protocol,
          frontend: { address: server.address, port: server.port },
          backend: { address: now.address, port: now.port },
          begun: since('connections'),
          sent,
          received: { packets: since('packetsOut'), bytes: since('bytesOut') },
        },
      ]
    }),
  )
}

function totalOf(pairs: readonly Pair[]): Counted['total'] {
  const total = { begun: 0, sent: { packets: 0, bytes: 0 }, received: { packets: 0, bytes: 0 } }
  for (const { begun, sent, received } of pairs) {
    total.begun += begun
    total.sent.packets += sent.packets
    total.sent.bytes += sent.bytes
    total.received.packets += received.packets
    total.received.bytes += received.bytes
  }
  return total
}
