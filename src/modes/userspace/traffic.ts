// What goes through the proxy's own listeners: the kernel counts what comes to frontends, and the threads what goes to backends.

import { closeAllNow } from '../../lib/close-all.ts'
import { inPieces } from '../../lib/in-pieces.ts'
import type { ServicePortView } from '../../model/types.ts'
import type { Carried, TrafficCounter } from '../traffic.ts'
import type { DataPlane } from '../../data-path/data-plane.ts'
import type { Listeners } from '../../data-path/listeners.ts'
import { BACKEND_COUNTERS, type BackendTotals } from '../../data-path/backend-counters.ts'
import { LISTS, servedName } from './served-name.ts'

/** Service ports that are looked at before other work gets a turn. */
const PIECE = 256

export interface UserspaceTrafficOptions {
  readonly kernel: TrafficCounter
  readonly listeners: Pick<Listeners, 'get'>
  readonly plane: Pick<DataPlane, 'countBackends'>
}

export function openUserspaceTraffic({ kernel, listeners, plane }: UserspaceTrafficOptions): TrafficCounter {
  const backendCounters = plane.countBackends()
  return {
    async read(views) {
      const all = [...views]
      const counted = await kernel.read(all)
      return { ...counted, carried: await carriedTo(all, listeners, backendCounters.read()) }
    },
    close: () =>
      closeAllNow(
        () => kernel.close(),
        () => backendCounters.close(),
      ),
  }
}

/** Leaves out backends without traffic. A backend that is in both lists of a service port appears once. */
async function carriedTo(
  views: readonly ServicePortView[],
  listeners: Pick<Listeners, 'get'>,
  counts: ReadonlyMap<number, BackendTotals>,
): Promise<Carried[]> {
  const all: Carried[] = []
  await inPieces(views, PIECE, (view) => {
    for (const carried of carriedBy(view, listeners, counts)) all.push(carried)
  })
  return all
}

function carriedBy(
  view: ServicePortView,
  listeners: Pick<Listeners, 'get'>,
  counts: ReadonlyMap<number, BackendTotals>,
): Iterable<Carried> {
  const carried = new Map<string, Carried>()
  for (const list of LISTS) {
    for (const { ip, port, serial, restsForMs } of listeners.get(servedName(view, list))?.pool.backends() ?? []) {
      const counted = counts.get(serial)
      if (counted === undefined) continue
      const before = carried.get(`${ip} ${port}`)
      const sum = Object.fromEntries(BACKEND_COUNTERS.map((name) => [name, counted[name] + (before?.[name] ?? 0)]))
      carried.set(`${ip} ${port}`, {
        service: view.name,
        protocol: view.protocol,
        backend: { address: ip, port },
        isResting: restsForMs > 0,
        ...(sum as unknown as BackendTotals),
      })
    }
  }
  return carried.values()
}
