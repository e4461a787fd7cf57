// Removes backends that do not answer from the lists of the policies, as long as enough others remain.

import { joinHostPort } from '../lib/ip.ts'
import type { Endpoint } from './endpoints.ts'

/** `ip:port` of the backends that do not answer, the first one found first. */
export type Ejections = ReadonlySet<string>

export const NO_EJECTIONS: Ejections = new Set()

export interface SiftedList {
  readonly kept: readonly Endpoint[]
  readonly ejected: readonly Endpoint[]
}

/** Removes at most half of a list, the first ones found first. */
export function siftEjected(list: readonly Endpoint[], ejections: Ejections): SiftedList {
  if (ejections.size === 0) return { kept: list, ejected: [] }
  const most = Math.floor(list.length / 2)
  const byKey = new Map(list.map((endpoint) => [joinHostPort(endpoint.ip, endpoint.port), endpoint]))
  const out = new Set<Endpoint>()
  for (const key of ejections) {
    if (out.size === most) break
    const endpoint = byKey.get(key)
    if (endpoint !== undefined) out.add(endpoint)
  }
  if (out.size === 0) return { kept: list, ejected: [] }
  return {
    kept: list.filter((endpoint) => !out.has(endpoint)),
    ejected: list.filter((endpoint) => out.has(endpoint)),
  }
}
