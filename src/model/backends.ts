// Lists of backends. A list with the same content stays the same object: plans compare lists by identity first.

import { joinHostPort } from '../lib/ip.ts'
import { type BackendList, RecordWriter } from './backend-list.ts'
import type { Balance } from './balance.ts'
import type { Endpoint } from './endpoints.ts'
import type { Policy, ServicePortView } from './types.ts'
import { FULL_SHARE, type Rungs, shareOf } from './shares.ts'
import { DEFAULT_WEIGHT, LARGEST_WEIGHT } from './weights.ts'

export interface BackendLists {
  readonly cluster: BackendList
  readonly local: BackendList
  /** Both together, in order. The same list as one of them when that one holds the other. */
  readonly union: BackendList
}

export interface ListOptions {
  readonly balance: Balance
  /** With least connections, of those that get a smaller share. */
  readonly rungs: Rungs | undefined
  readonly previous: ServicePortView | undefined
}

const NO_RUNGS: Rungs = new Map()

/**
 * Turns endpoints into backends, reusing lists of the last view. `cluster` and `local` are parts of `all` in the same order.
 */
export function backendLists(
  all: readonly Endpoint[],
  { cluster, local }: { readonly cluster: readonly Endpoint[]; readonly local: readonly Endpoint[] },
  { balance, rungs, previous }: ListOptions,
): BackendLists {
  const endpoints = unionOf(all, cluster, local)
  const union = toList(endpoints, { balance, rungs }, previous?.backends)
  const narrow = (part: readonly Endpoint[], policy: Policy) =>
    part.length === endpoints.length ? union : toList(part, { balance, rungs }, previous?.lists[policy])
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

function toList(
  endpoints: readonly Endpoint[],
  options: Omit<ListOptions, 'previous'>,
  previous: BackendList | undefined,
): BackendList {
  const records = new RecordWriter(endpoints.length)
  const weightOf = weigher(endpoints, options)
  for (const endpoint of endpoints) {
    const { address, port, isLocal, nodeName } = endpoint
    records.add({ address, port, isLocal, mayBeLocal: nodeName === '', weight: weightOf?.(endpoint) ?? DEFAULT_WEIGHT })
  }
  return records.list(options.balance, previous)
}

/** The whole number that an endpoint weighs. Undefined: all weigh what they do without weights, as in most clusters. */
function weigher(
  endpoints: readonly Endpoint[],
  { balance, rungs = NO_RUNGS }: Omit<ListOptions, 'previous'>,
): ((endpoint: Endpoint) => number) | undefined {
  const moves = rungs.size > 0 && balance === 'least-connections'
  if (!moves && endpoints.every(({ weight }) => weight === DEFAULT_WEIGHT)) return undefined
  const scale = scaleOf(endpoints, moves ? FULL_SHARE : 1)
  return ({ ip, port, weight }) => {
    const whole = scale === 0 ? DEFAULT_WEIGHT : Math.min(LARGEST_WEIGHT, Math.round(weight * scale))
    return moves ? whole * shareOf(rungs.get(joinHostPort(ip, port)) ?? 0) : whole
  }
}

/** What makes whole numbers of the weights, of which so many fit: percentages are fractions. 0: none weighs anything, so all weigh the same. */
function scaleOf(endpoints: readonly Endpoint[], times: number): number {
  let scale = 0
  let largest = 0
  for (const { weight } of endpoints) {
    if (!Number.isInteger(weight)) scale = 100
    else if (weight > 0 && scale === 0) scale = 1
    largest = Math.max(largest, weight)
  }
  return times === 1 ? scale : Math.min(scale, LARGEST_WEIGHT / times / largest)
}

/** `ip:port` of those that serve. */
export function servingList(all: readonly Endpoint[], previous: ServicePortView | undefined): readonly string[] {
  const serving = all.filter((endpoint) => endpoint.serving).map(({ ip, port }) => joinHostPort(ip, port))
  const before = previous?.serving
  if (before?.length === serving.length && before.every((text, i) => text === serving[i])) return before
  return serving
}
