// Connections whose endpoint their sockets have chosen: no rule sees them, so they are counted where they are chosen.

import type { SocketBalancing } from '../connect/socket-balancing.ts'
import type { Family } from '../lib/ip.ts'
import type { TrafficCounter } from '../modes/contract.ts'
import type { CountedPair } from '../modes/traffic.ts'
import { NO_TRAFFIC } from '../traffic/traffic-counts.ts'

type Open = (family: Family) => TrafficCounter

/** A counter that adds them to what `open` counts, since it is open. */
export function countingChosen(open: Open, sockets: Pick<SocketBalancing, 'counts'>): Open {
  return (family) => {
    const counter = open(family)
    const before = readChosen(sockets, family)
    // The first reading tells of a failure.
    before.catch(() => {})
    return {
      async read(views) {
        const base = new Map((await before).map(({ id, begun }) => [id, begun]))
        const counted = await counter.read(views)
        const chosen = (await readChosen(sockets, family)).flatMap((pair): CountedPair[] => {
          const earlier = base.get(pair.id) ?? 0
          // Fewer than before: they were counted from the beginning.
          const begun = pair.begun < earlier ? pair.begun : pair.begun - earlier
          return begun === 0 ? [] : [{ ...pair, begun }]
        })
        const begun = chosen.reduce((sum, pair) => sum + pair.begun, counted.total.begun)
        return { ...counted, pairs: [...counted.pairs, ...chosen], total: { ...counted.total, begun } }
      },
      close: () => counter.close(),
    }
  }
}

async function readChosen(sockets: Pick<SocketBalancing, 'counts'>, family: Family): Promise<CountedPair[]> {
  return (await sockets.counts(family)).map(({ protocol, frontend, backend, count }) => ({
    ...NO_TRAFFIC,
    id: `chosen ${protocol} ${frontend.address} ${frontend.port} ${backend.address} ${backend.port}`,
    protocol,
    frontend,
    backend,
    begun: count,
    isChosen: true,
  }))
}
