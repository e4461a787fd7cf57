// Where clients fail now, for the map.

import type { ServiceInfo } from '../../protocol.ts'
import { addMet, type Met, type MetBy } from '../flow.ts'
import { formatPerSecond, type Rate } from '../rates.ts'
import { targetOf } from './targets.ts'

type Failed = Pick<Met, 'refused' | 'timedOut' | 'cut'>

/** `refused 3.3/s, timed out 1/s`; '' where nothing fails. */
export function failureWords(met: Failed): string {
  return listFailures(met, (rate, word) => `${word} ${formatPerSecond(rate)}`)
}

/** `3 refused, 1 timed out`; '' where nothing failed. */
export function failureCounts(met: Failed): string {
  return listFailures(met, (number, word) => `${number} ${word}`)
}

function listFailures({ refused, timedOut, cut }: Failed, say: (value: number, word: string) => string): string {
  const parts = [
    [refused, 'refused'],
    [timedOut, 'timed out'],
    [cut, 'cut off'],
  ] as const
  return parts.flatMap(([value, word]) => (value > 0 ? [say(value, word)] : [])).join(', ')
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
export function metWords(met: Met): string {
  const parts = [`${met.answered} answered`, failureCounts(met), met.retried > 0 ? `${met.retried} retried` : '']
  return parts.filter(Boolean).join(', ')
}
