// The endpoints of a service port, put together from all slices of the service.

import type { Protocol } from '../kube/types.ts'
import { type Bytes, formatIp } from '../lib/ip.ts'
import { addressAt, countOf, credibility, READY, SERVING, TERMINATING } from './slice-record.ts'
import type { SliceRecord } from './slice-record.ts'
import { DEFAULT_WEIGHT, weightOf, type Weights } from './weights.ts'

/** One endpoint of a service port. It lives during planning only: a BackendList takes less memory. */
export interface Endpoint {
  readonly address: Bytes
  /** The canonical text of the address. */
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
  /** Its share of new connections, relative to the others. With percentages, a fraction. */
  readonly weight: number
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
 * (it moves from one to another, or its address has a new owner), the more credible wins, then the earlier slice. `weights`: of the
 * Service; a slice that has its own goes before.
 */
export function mergeEndpoints(sources: readonly PortSource[], nodeName: string, weights?: Weights): Endpoint[] {
  // Within one slice, addresses are sorted and unique.
  if (sources.length === 1) return endpointsOf(sources[0]!, nodeName, weights)
  const all = sources.flatMap((source) => endpointsOf(source, nodeName, weights))
  all.sort((a, b) => {
    if (a.address !== b.address) return a.address < b.address ? -1 : 1
    return a.port - b.port || credibility(b.conditions) - credibility(a.conditions)
  })
  return all.filter(({ address, port }, i) => address !== all[i - 1]?.address || port !== all[i - 1]?.port)
}

/** A slice has up to 20,000 ports, mostly for the same endpoints: counting stops after this many lookups. */
const MOST_LOOKS = 1_000_000

/** How many different addresses of ready endpoints the sources have on the node, whatever port. */
export function countLocalReady(sources: Iterable<readonly PortSource[]>, nodeName: string): number {
  const addresses = new Set<string>()
  let looks = 0
  for (const ofPort of sources) {
    looks += countEndpoints(ofPort)
    if (looks > MOST_LOOKS) break
    for (const { address, isLocal, ready } of mergeEndpoints(ofPort, nodeName)) {
      if (isLocal && ready) addresses.add(address)
    }
  }
  return addresses.size
}

/** How many endpoints the sources have together, before those that are there twice are left out. */
export function countEndpoints(sources: readonly PortSource[]): number {
  let count = 0
  for (const { record } of sources) count += countOf(record)
  return count
}

function endpointsOf(source: PortSource, nodeName: string, weights?: Weights): RecordedEndpoint[] {
  const endpoints: RecordedEndpoint[] = []
  const ofSlice = source.record.weights ?? weights
  for (let index = 0; index < countOf(source.record); index++) {
    endpoints.push(new RecordedEndpoint(source, index, nodeName, ofSlice))
  }
  return endpoints
}

/** An endpoint of a slice. Getters read its columns when they are used. */
class RecordedEndpoint implements Endpoint {
  readonly address: Bytes
  readonly port: number
  readonly isLocal: boolean
  readonly #record: SliceRecord
  readonly #index: number
  readonly #weights: Weights | undefined

  constructor({ record, port }: PortSource, index: number, nodeName: string, weights: Weights | undefined) {
    this.#record = record
    this.#index = index
    this.#weights = weights
    this.address = addressAt(record, index)
    this.port = port
    this.isLocal = nodeName !== '' && record.nodeNames[index] === nodeName
  }

  get conditions(): number {
    return this.#record.conditions.charCodeAt(this.#index)
  }

  get ip(): string {
    return formatIp(this.address)
  }

  get nodeName(): string {
    return this.#record.nodeNames[this.#index] ?? ''
  }

  get ready(): boolean {
    return (this.conditions & READY) !== 0
  }

  get serving(): boolean {
    return (this.conditions & SERVING) !== 0
  }

  get terminating(): boolean {
    return (this.conditions & TERMINATING) !== 0
  }

  get weight(): number {
    return this.#weights === undefined ? DEFAULT_WEIGHT : weightOf(this.#weights, this)
  }

  get zoneHints(): Endpoint['zoneHints'] {
    return this.#record.zoneHints?.[this.#index]
  }

  get nodeHints(): Endpoint['nodeHints'] {
    return this.#record.nodeHints?.[this.#index]
  }
}
