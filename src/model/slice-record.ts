// An EndpointSlice as the model keeps it: validated, in columns instead of an object per endpoint.
//
// A cluster may have a million endpoints. The API's shape costs about 150 bytes each, this one 13, or 25 with IPv6.

import type { EndpointPort, EndpointSlice, NamespacedName, SliceEndpoint } from '../kube/types.ts'
import {
  type Bytes,
  type Family,
  isLinkLocal,
  isLinkLocalMulticast,
  isLoopback,
  isUnspecified,
  parseIp,
  asBytes,
} from '../lib/ip.ts'
import { compareBytes, isOfFamily } from './address.ts'
import { readAnnotations } from './annotations.ts'
import { Summary } from './summary.ts'
import { isPortName, isPortNumber, isProtocol, quote } from './valid.ts'
import type { Weights } from './weights.ts'

export const READY = 1
export const SERVING = 2
export const TERMINATING = 4

/** One slice's endpoints of one family. The columns have one value per endpoint, in order of address, each address once. */
export interface SliceRecord {
  /** `namespace/name` of the slice. */
  readonly key: NamespacedName
  /** `namespace/name` of the service that the slice belongs to. */
  readonly service: NamespacedName
  readonly ports: readonly SlicePort[]
  /** One after the other: see {@link addressAt}. */
  readonly addresses: Bytes
  /** READY, SERVING and TERMINATING. There are as many as endpoints. */
  readonly conditions: Bytes
  /** '' where the endpoint does not say. */
  readonly nodeNames: readonly string[]
  /** Undefined when no endpoint has any. */
  readonly zoneHints: readonly (readonly string[] | undefined)[] | undefined
  readonly nodeHints: readonly (readonly string[] | undefined)[] | undefined
  /** How much its endpoints weigh; undefined: up to the Service. */
  readonly weights: Weights | undefined
}

export function countOf({ conditions }: SliceRecord): number {
  return conditions.length
}

export function addressAt({ addresses, conditions }: SliceRecord, index: number): Bytes {
  const length = addresses.length / conditions.length
  return addresses.slice(index * length, (index + 1) * length)
}

/** A port of a slice that has a number. */
export interface SlicePort extends EndpointPort {
  readonly port: number
}

const ADDRESS_TYPE = { 4: 'IPv4', 6: 'IPv6' } as const

/** Whether the slice is of this family, or of an unknown one, which each family reports. */
export function concernsFamily(slice: EndpointSlice, family: Family): boolean {
  return slice.addressType !== ADDRESS_TYPE[family === 4 ? 6 : 4]
}

/** Reads a slice. Undefined when nothing of it can be used. What is left out goes to `problems`. */
export function parseSlice(
  slice: EndpointSlice,
  keys: { readonly key: NamespacedName; readonly service: NamespacedName },
  context: {
    readonly family: Family
    readonly problems: string[]
    /** Messages about our annotations; absent: they are among the problems. */
    readonly annotationProblems?: string[]
  },
): SliceRecord | undefined {
  const { family, problems } = context
  if (slice.addressType !== ADDRESS_TYPE[family]) {
    problems.push(`address type ${quote(slice.addressType)} is not IPv4 or IPv6; the slice is ignored`)
    return undefined
  }
  if (slice.serviceName === '') {
    problems.push('label kubernetes.io/service-name is missing; the slice is ignored')
    return undefined
  }
  const { endpoints, addresses } = uniqueEndpoints(slice.endpoints, family, problems)
  return {
    key: keys.key,
    service: keys.service,
    ports: usablePorts(slice.ports, problems),
    // The result of join() is one flat string. Adding piece by piece would make a tree of them.
    addresses: asBytes(addresses.join('')),
    conditions: conditionsColumn(endpoints),
    nodeNames: endpoints.map(({ nodeName }) => nodeName ?? ''),
    zoneHints: hintsColumn(endpoints, ({ zoneHints }) => zoneHints),
    nodeHints: hintsColumn(endpoints, ({ nodeHints }) => nodeHints),
    weights: readAnnotations(slice.annotations, context.annotationProblems ?? problems).weights,
  }
}

/** Whether two records of the same slice are equal. */
export function sameRecord(a: SliceRecord, b: SliceRecord): boolean {
  return (
    a.service === b.service &&
    a.weights?.text === b.weights?.text &&
    a.conditions === b.conditions &&
    a.addresses === b.addresses &&
    sameStrings(a.nodeNames, b.nodeNames) &&
    a.ports.length === b.ports.length &&
    a.ports.every((port, i) => samePort(port, b.ports[i])) &&
    sameHints(a.zoneHints, b.zoneHints) &&
    sameHints(a.nodeHints, b.nodeHints)
  )
}

/**
 * Of two endpoints with the same address and port, the one with the higher number counts. The address of a terminating pod
 * may already belong to a new pod, so an endpoint that is not terminating always wins.
 */
export function credibility(conditions: number): number {
  return (
    ((conditions & TERMINATING) === 0 ? 4 : 0) +
    ((conditions & READY) === 0 ? 0 : 2) +
    ((conditions & SERVING) === 0 ? 0 : 1)
  )
}

/** Two columns: endpoints, and the address of each. */
interface ReadEndpoints {
  readonly endpoints: readonly SliceEndpoint[]
  readonly addresses: readonly Bytes[]
}

function uniqueEndpoints(endpoints: readonly SliceEndpoint[], family: Family, problems: string[]): ReadEndpoints {
  const addresses: Bytes[] = []
  let last: Bytes = asBytes('')
  for (const { address } of endpoints) {
    const bytes = parseIp(address)
    // Mostly all are valid and sorted: then nothing needs sorting, and there are no duplicates.
    if (bytes === undefined || whyRefused(bytes, family) !== undefined || bytes <= last)
      return sortEndpoints(endpoints, family, problems)
    addresses.push(bytes)
    last = bytes
  }
  return { endpoints, addresses }
}

function sortEndpoints(endpoints: readonly SliceEndpoint[], family: Family, problems: string[]): ReadEndpoints {
  const read: { readonly bytes: Bytes; readonly endpoint: SliceEndpoint }[] = []
  const refused = new Summary()
  for (const endpoint of endpoints) {
    const bytes = parseIp(endpoint.address)
    const why = whyRefused(bytes, family)
    if (bytes !== undefined && why === undefined) read.push({ bytes, endpoint })
    else refused.add(() => `endpoint address ${quote(endpoint.address)} ${why} and is ignored`)
  }
  refused.addTo(problems)
  read.sort(
    (a, b) =>
      compareBytes(a.bytes, b.bytes) || credibility(conditionsOf(b.endpoint)) - credibility(conditionsOf(a.endpoint)),
  )
  const unique = read.filter(({ bytes }, i) => i === 0 || bytes !== read[i - 1]?.bytes)
  return { endpoints: unique.map(({ endpoint }) => endpoint), addresses: unique.map(({ bytes }) => bytes) }
}

function whyRefused(bytes: Bytes | undefined, family: Family): string | undefined {
  if (bytes === undefined || !isOfFamily(bytes, family)) return `is not an IPv${family} address`
  return isForbidden(bytes) ? 'is loopback, link-local or unspecified' : undefined
}

/** One string for the most frequent column: endpoints that are ready and serve. */
function conditionsColumn(endpoints: readonly SliceEndpoint[]): Bytes {
  const count = endpoints.length
  if (endpoints.every((endpoint) => conditionsOf(endpoint) === USUAL)) {
    return (USUAL_CONDITIONS[count] ??= asBytes(String.fromCharCode(USUAL).repeat(count)))
  }
  return asBytes(endpoints.map((endpoint) => String.fromCharCode(conditionsOf(endpoint))).join(''))
}

const USUAL = READY | SERVING

/** By the number of endpoints, of which the API server allows 1000 in a slice. */
const USUAL_CONDITIONS: Bytes[] = []

function conditionsOf(endpoint: SliceEndpoint): number {
  return (endpoint.ready ? READY : 0) | (endpoint.serving ? SERVING : 0) | (endpoint.terminating ? TERMINATING : 0)
}

/**
 * The API server rejects these for endpoints. If it did not, they would lead clients to what is private to this node: its
 * loopback, the metadata service of its cloud.
 */
function isForbidden(bytes: Bytes): boolean {
  return isUnspecified(bytes) || isLoopback(bytes) || isLinkLocal(bytes) || isLinkLocalMulticast(bytes)
}

function usablePorts(ports: readonly EndpointPort[], problems: string[]): readonly SlicePort[] {
  if (ports.every(isUsable)) return knownPorts.same(ports)
  const refused = new Summary()
  for (const port of ports) {
    const why = refusalOf(port)
    if (why !== undefined) refused.add(() => `port ${quote(port.name)} ${why} and is ignored`)
  }
  refused.addTo(problems)
  return knownPorts.same(ports.filter(isUsable))
}

function isUsable(port: EndpointPort): port is SlicePort {
  return refusalOf(port) === undefined
}

/** Slices share lists of ports: a cluster has few different ones. */
class KnownPorts {
  readonly #lists = new Map<string, readonly SlicePort[]>()
  #last: readonly SlicePort[] = []

  /** An equal list. */
  same(ports: readonly SlicePort[]): readonly SlicePort[] {
    const only = ports[0]
    // Lists that were filled have room for more than they hold; copies have not.
    if (only === undefined || ports.length > 1) return ports.slice()
    if (!samePort(only, this.#last[0])) this.#last = this.#lookUp(only)
    return this.#last
  }

  #lookUp(only: SlicePort): readonly SlicePort[] {
    const key = `${only.port} ${only.protocol} ${only.name}`
    let known = this.#lists.get(key)
    if (known === undefined) {
      // Tenants choose ports, so the table has a limit. Frequent lists come back by themselves.
      if (this.#lists.size >= MOST_KNOWN_PORTS) this.#lists.clear()
      known = [only]
      this.#lists.set(key, known)
    }
    return known
  }
}

const MOST_KNOWN_PORTS = 4096
const knownPorts = new KnownPorts()

function refusalOf({ name, port, protocol }: EndpointPort): string | undefined {
  if (!isPortName(name)) return 'has an invalid name'
  if (port === undefined) return 'has no number'
  if (!isPortNumber(port)) return `has the invalid number ${port}`
  return isProtocol(protocol) ? undefined : 'has an unknown protocol'
}

function hintsColumn(
  endpoints: readonly SliceEndpoint[],
  hintsOf: (endpoint: SliceEndpoint) => readonly string[] | undefined,
): SliceRecord['zoneHints'] {
  return endpoints.some((endpoint) => hintsOf(endpoint) !== undefined) ? endpoints.map(hintsOf) : undefined
}

function samePort(a: SlicePort, b: SlicePort | undefined): boolean {
  return b !== undefined && a.name === b.name && a.protocol === b.protocol && a.port === b.port
}

function sameStrings(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((value, i) => value === b[i])
}

function sameHints(a: SliceRecord['zoneHints'], b: SliceRecord['zoneHints']): boolean {
  if (a === undefined || b === undefined) return a === b
  return a.length === b.length && a.every((hints, i) => sameStrings(hints ?? [], b[i] ?? []))
}
