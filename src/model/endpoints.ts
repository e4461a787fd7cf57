// The endpoints of a service port, put together from all slices of the service.

import type { Protocol } from '../kube/types.ts'
import { parseIp } from '../lib/ip.ts'
import type { Bytes } from '../lib/ip.ts'
import { credibility, READY, SERVING, TERMINATING } from './slice-record.ts'
import type { SliceRecord } from './slice-record.ts'

/** One endpoint of a service port. Made for planning and forgotten afterwards; what stays is a Backend. */
export interface Endpoint {
  readonly ip: string
  readonly port: number
  readonly isLocal: boolean
  /** '' where the endpoint does not say. */
  readonly nodeName: string
  /** Ready and not terminating, or the service publishes addresses that are not ready. */
  readonly ready: boolean
  /** Ready, terminating or not. */
  readonly serving: boolean
  readonly terminating: boolean
  readonly zoneHints: readonly string[] | undefined
  readonly nodeHints: readonly string[] | undefined
}

/** A slice that has endpoints for a service port, and the number of that port there. */
export interface PortSource {
  readonly record: SliceRecord
  readonly port: number
}

/** Where each port's endpoints are found. Ports are matched by name and protocol: see {@link portKey}. */
export function portSources(records: readonly SliceRecord[]): ReadonlyMap<string, readonly PortSource[]> {
  const sources = new Map<string, PortSource[]>()
  for (const record of records) {
    for (const { name, protocol, port } of record.ports) {
      const key = portKey(name, protocol)
      const known = sources.get(key)
      if (known === undefined) sources.set(key, [{ record, port }])
      else known.push({ record, port })
    }
  }
  return sources
}

export function portKey(name: string, protocol: Protocol): string {
  return `${protocol}/${name}`
}

/**
 * The endpoints of one service port in order of address and port, each once. Where slices disagree about an endpoint
 * (it is just moving from one to another, or its address has a new owner), the more credible wins, then the earlier slice.
 */
export function mergeEndpoints(sources: readonly PortSource[], nodeName: string): Endpoint[] {
  const [first, ...others] = sources
  if (first === undefined) return []
  // Within one slice, addresses are sorted and unique.
  if (others.length === 0) return first.record.addresses.map((_, i) => endpointAt(first, i, nodeName))

  const all: { readonly source: PortSource; readonly index: number; readonly bytes: Bytes }[] = []
  for (const source of sources) {
    for (const [index, address] of source.record.addresses.entries()) {
      all.push({ source, index, bytes: parseIp(address) ?? '' })
    }
  }
  all.sort((a, b) => {
    if (a.bytes !== b.bytes) return a.bytes < b.bytes ? -1 : 1
    return (
      a.source.port - b.source.port ||
      credibility(b.source.record.conditions.charCodeAt(b.index)) -
        credibility(a.source.record.conditions.charCodeAt(a.index))
    )
  })
  return all
    .filter(({ bytes, source }, i) => bytes !== all[i - 1]?.bytes || source.port !== all[i - 1]?.source.port)
    .map(({ source, index }) => endpointAt(source, index, nodeName))
}

/** Slices have up to 20,000 ports, mostly for the same endpoints. After so many looks, the ports that are left are not asked. */
const MOST_LOOKS = 1_000_000

/** How many different addresses of ready endpoints the sources have on the node, whatever port. */
export function countLocalReady(sources: Iterable<readonly PortSource[]>, nodeName: string): number {
  const addresses = new Set<string>()
  let looks = 0
  for (const ofPort of sources) {
    looks += countEndpoints(ofPort)
    if (looks > MOST_LOOKS) break
    for (const { ip, isLocal, ready } of mergeEndpoints(ofPort, nodeName)) {
      if (isLocal && ready) addresses.add(ip)
    }
  }
  return addresses.size
}

/** How many endpoints the sources have together, before those that are there twice are left out. */
export function countEndpoints(sources: readonly PortSource[]): number {
  return sources.reduce((sum, { record }) => sum + record.addresses.length, 0)
}

function endpointAt({ record, port }: PortSource, index: number, nodeName: string): Endpoint {
  const conditions = record.conditions.charCodeAt(index)
  return {
    ip: record.addresses[index] ?? '',
    port,
    isLocal: nodeName !== '' && record.nodeNames[index] === nodeName,
    nodeName: record.nodeNames[index] ?? '',
    ready: (conditions & READY) !== 0,
    serving: (conditions & SERVING) !== 0,
    terminating: (conditions & TERMINATING) !== 0,
    zoneHints: record.zoneHints?.[index],
    nodeHints: record.nodeHints?.[index],
  }
}
