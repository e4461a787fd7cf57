// Where clients fail now, for the map.

import type { ServiceInfo } from '../../protocol.ts'
import { addMet, type Met, type MetBy } from '../flow.ts'
import { formatPerSecond, type Rate } from '../rates.ts'
import { targetOf } from './targets.ts'

/** `refused 3.3/s, timed out 1/s`; '' where nothing fails. */
export function failureWords({ refused, timedOut, cut }: Pick<Met, 'refused' | 'timedOut' | 'cut'>): string {
  const parts = [
    ['refused', refused],
    ['timed out', timedOut],
    ['cut off', cut],
  ] as const
  return parts
    .filter(([, rate]) => rate > 0)
    .map(([word, rate]) => `${word} ${formatPerSecond(rate)}`)
    .join(', ')
}

/** What clients met at each pod, by its id on the map. */
export function metByTarget(services: readonly ServiceInfo[], { backends }: MetBy): ReadonlyMap<string, Met> {
  const found = new Map<string, Met>()
  if (backends.size === 0) return found
  const addresses = new Map<string, string>()
  for (const { ports } of services) {
    for (const port of ports) for (const backend of port.backends) addresses.set(backend.address, targetOf(backend))
  }
  for (const [address, met] of backends) {
    const target = addresses.get(address)
    if (target !== undefined) found.set(target, addMet(found.get(target), met))
  }
  return found
}

/**
 * What a service turns away, or what is lost before it reaches an endpoint. The rules count every client's packets, the page's own client
 * counts connections, and is among them.
 */
export function failedBefore({ ports }: Pick<ServiceInfo, 'ports'>, { nowhere }: MetBy, rules: Rate): Met {
  const met = addMet(...ports.map(({ id }) => nowhere.get(id)))
  return {
    ...met,
    refused: mostOf(met.refused, rules.refused),
    timedOut: met.timedOut > 0 ? met.timedOut : rules.dropped,
  }
}

/** Both are measured over different times: a little more of one is nothing. */
function mostOf(reported: number, rules: number): number {
  return rules > reported * 1.5 ? rules : reported
}

/** Of a service: what failed at it, and at its endpoints. */
export function failedAt(service: Pick<ServiceInfo, 'ports'>, now: MetBy, rules: Rate): Met {
  const all = addMet(...service.ports.map(({ id }) => now.services.get(id)))
  const nowhere = addMet(...service.ports.map(({ id }) => now.nowhere.get(id)))
  const before = failedBefore(service, now, rules)
  return {
    ...all,
    refused: all.refused - nowhere.refused + before.refused,
    timedOut: all.timedOut - nowhere.timedOut + before.timedOut,
  }
}

/** Since the page was opened: `120 answered, 3 refused`. */
export function metWords({ answered, refused, timedOut, cut, retried }: Met): string {
  const parts = [
    [`answered`, answered],
    ['refused', refused],
    ['timed out', timedOut],
    ['cut off', cut],
    ['retried', retried],
  ] as const
  return parts
    .filter(([word, count]) => count > 0 || word === 'answered')
    .map(([word, count]) => `${count} ${word}`)
    .join(', ')
}
