// Lists of backends. A list with the same content stays the same object: plans compare lists by identity first.

import { joinHostPort } from '../lib/ip.ts'
import { type BackendList, RecordWriter } from './backend-list.ts'
import type { Balance } from './balance.ts'
import type { Endpoint } from './endpoints.ts'
import type { Policy, ServicePortView } from './types.ts'
import { DEFAULT_WEIGHT, LARGEST_WEIGHT } from './weights.ts'

export interface BackendLists {
  readonly cluster: BackendList
  readonly local: BackendList
  /** Both together, in order. The same list as one of them when that one holds the other. */
  readonly union: BackendList
}

/**
 * Turns endpoints into backends, reusing lists of the last view. `cluster` and `local` are parts of `all` in the same order.
 */
export function backendLists(
  all: readonly Endpoint[],
  { cluster, local }: { readonly cluster: readonly Endpoint[]; readonly local: readonly Endpoint[] },
  { balance, previous }: { readonly balance: Balance; readonly previous: ServicePortView | undefined },
): BackendLists {
  const endpoints = unionOf(all, cluster, local)
  const union = toList(endpoints, balance, previous?.backends)
  const narrow = (part: readonly Endpoint[], policy: Policy) =>
    part.length === endpoints.length ? union : toList(part, balance, previous?.lists[policy])
  return { cluster: narrow(cluster, 'Cluster'), local: narrow(local, 'Local'), union }
}

function unionOf(
  all: readonly Endpoint[],
  cluster: readonly Endpoint[],
  local: readonly Endpoint[],
): readonly Endpoint[] {
  if (local.length === 0) return cluster
  if (cluster.length === 0) return local
  let ofCluster = 0
  let ofLocal = 0
  return all.filter((endpoint) => {
    const isCluster = cluster[ofCluster] === endpoint
    const isLocal = local[ofLocal] === endpoint
    if (isCluster) ofCluster++
    if (isLocal) ofLocal++
    return isCluster || isLocal
  })
}

function toList(endpoints: readonly Endpoint[], balance: Balance, previous: BackendList | undefined): BackendList {
  const records = new RecordWriter(endpoints.length)
  const scale = scaleOf(endpoints)
  for (const { address, port, isLocal, nodeName, weight } of endpoints) {
    const whole = scale === 0 ? DEFAULT_WEIGHT : Math.min(LARGEST_WEIGHT, Math.round(weight * scale))
    records.add({ address, port, isLocal, mayBeLocal: nodeName === '', weight: whole })
  }
  return records.list(balance, previous)
}

/** What makes whole numbers of the weights: percentages are fractions. 0: none weighs anything, so all weigh the same. */
function scaleOf(endpoints: readonly Endpoint[]): number {
  let scale = 0
  for (const { weight } of endpoints) {
    if (!Number.isInteger(weight)) return 100
    if (weight > 0) scale = 1
  }
  return scale
}

/** `ip:port` of those that serve. */
export function servingList(all: readonly Endpoint[], previous: ServicePortView | undefined): readonly string[] {
  const serving = all.filter((endpoint) => endpoint.serving).map(({ ip, port }) => joinHostPort(ip, port))
  const before = previous?.serving
  if (before?.length === serving.length && before.every((text, i) => text === serving[i])) return before
  return serving
}
