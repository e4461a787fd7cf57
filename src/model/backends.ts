// Lists of backends that stay the same objects while their content stays the same.
//
// Plans compare lists by identity first, and a hundred thousand backends made anew at each change of their service would
// be garbage to collect.

import { joinHostPort, parseIp } from '../lib/ip.ts'
import { compareBytes } from './address.ts'
import type { Endpoint } from './endpoints.ts'
import type { Backend, Policy, ServicePortView } from './types.ts'
import { DEFAULT_WEIGHT, weightOf, type Weights } from './weights.ts'

export interface BackendLists {
  readonly cluster: readonly Backend[]
  readonly local: readonly Backend[]
  /** Both together, in order. The same array as one of them when that one holds the other. */
  readonly union: readonly Backend[]
}

/**
 * Turns endpoints into backends, reusing objects and arrays of the last view. `cluster` and `local` are parts of `all`
 * in the same order.
 */
export function backendLists(
  all: readonly Endpoint[],
  chosen: { readonly cluster: readonly Endpoint[]; readonly local: readonly Endpoint[] },
  { weights, previous }: { readonly weights: Weights | undefined; readonly previous: ServicePortView | undefined },
): BackendLists {
  const known = new Known(previous?.backends ?? [])
  const cluster: Backend[] = []
  const local: Backend[] = []
  const union: Backend[] = []
  for (const endpoint of all) {
    const isCluster = chosen.cluster[cluster.length] === endpoint
    const isLocal = chosen.local[local.length] === endpoint
    if (!isCluster && !isLocal) continue
    const before = known.take(endpoint.ip)
    const wanted = toBackend(endpoint, weights)
    const backend = before !== undefined && sameBackend(before, wanted) ? before : wanted
    if (isCluster) cluster.push(backend)
    if (isLocal) local.push(backend)
    union.push(backend)
  }
  const keptUnion = keep(union, previous?.backends)
  const narrow = (list: readonly Backend[], policy: Policy) =>
    list.length === union.length ? keptUnion : keep(list, previous?.lists[policy])
  return { cluster: narrow(cluster, 'Cluster'), local: narrow(local, 'Local'), union: keptUnion }
}

/** The backends of the last view. Both lists are in order of address, so that one walk along them finds what is in both. */
class Known {
  readonly #backends: readonly Backend[]
  #at = 0

  constructor(backends: readonly Backend[]) {
    this.#backends = backends
  }

  /** The backend with this address, if there was one. Addresses must be asked for in order. */
  take(ip: string): Backend | undefined {
    for (let backend = this.#backends[this.#at]; backend !== undefined; backend = this.#backends[++this.#at]) {
      if (backend.ip === ip) return this.#backends[this.#at++]
      // It comes later, or has gone.
      if (compareBytes(parseIp(backend.ip) ?? '', parseIp(ip) ?? '') > 0) return undefined
    }
    return undefined
  }
}

/** `ip:port` of those that serve; the last view's list when nothing changed. */
export function servingList(all: readonly Endpoint[], previous: ServicePortView | undefined): readonly string[] {
  const serving = all.filter((endpoint) => endpoint.serving).map(({ ip, port }) => joinHostPort(ip, port))
  const before = previous?.serving
  if (before?.length === serving.length && before.every((text, i) => text === serving[i])) return before
  return serving
}

/** The previous list when it is the same. Objects were reused where they are, so identity says it all. */
function keep(list: readonly Backend[], previous: readonly Backend[] | undefined): readonly Backend[] {
  if (previous?.length === list.length && previous.every((backend, i) => backend === list[i])) return previous
  // A list that grew by push() has room for many more; a copy has not.
  return list.slice()
}

function sameBackend(a: Backend, b: Backend): boolean {
  return (
    a.ip === b.ip &&
    a.port === b.port &&
    a.isLocal === b.isLocal &&
    a.mayBeLocal === b.mayBeLocal &&
    a.weight === b.weight
  )
}

/** Literals and no spreads: V8 keeps room for more fields in an object that was spread, and there may be a million of these. */
function toBackend(endpoint: Endpoint, weights: Weights | undefined): Backend {
  const { ip, port, isLocal, nodeName } = endpoint
  const weight = weights === undefined ? DEFAULT_WEIGHT : weightOf(weights, endpoint)
  if (weight !== DEFAULT_WEIGHT) {
    return nodeName === '' ? { ip, port, isLocal, mayBeLocal: true, weight } : { ip, port, isLocal, weight }
  }
  return nodeName === '' ? { ip, port, isLocal, mayBeLocal: true } : { ip, port, isLocal }
}
