// An EndpointSlice as the model keeps it: checked once, columns instead of an object per endpoint.
//
// A cluster has a hundred thousand endpoints. The API's shape costs about 150 bytes each, this one about 60, most of it
// the address.

import type { EndpointPort, EndpointSlice, NamespacedName, SliceEndpoint } from '../kube/types.ts'
import type { Bytes, Family } from '../lib/ip.ts'
import { compareBytes, isOfFamily, parseAddress } from './address.ts'
import { isPortNumber, isProtocol, quote } from './valid.ts'

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
  /** Canonical texts. */
  readonly addresses: readonly string[]
  /** READY, SERVING and TERMINATING. */
  readonly conditions: Bytes
  /** '' where the endpoint does not say. */
  readonly nodeNames: readonly string[]
  /** Undefined when no endpoint has any. */
  readonly zoneHints: readonly (readonly string[] | undefined)[] | undefined
  readonly nodeHints: readonly (readonly string[] | undefined)[] | undefined
}

/** A port of a slice that has a number. */
export interface SlicePort extends EndpointPort {
  readonly port: number
}

const ADDRESS_TYPE = { 4: 'IPv4', 6: 'IPv6' } as const

/** Whether the slice is of this family or of none that the proxy knows, in which case each family says so. */
export function concernsFamily(slice: EndpointSlice, family: Family): boolean {
  return slice.addressType !== ADDRESS_TYPE[family === 4 ? 6 : 4]
}

/** Reads a slice. Undefined when nothing of it can be used; what is left out is told in `problems`. */
export function parseSlice(
  slice: EndpointSlice,
  keys: { readonly key: NamespacedName; readonly service: NamespacedName },
  context: { readonly family: Family; readonly problems: string[] },
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
  const endpoints = uniqueEndpoints(slice.endpoints, family, problems)
  return {
    key: keys.key,
    service: keys.service,
    // Filtered lists have room for more than they hold; copies have not.
    ports: slice.ports.filter((port): port is SlicePort => isUsablePort(port, problems)).slice(),
    addresses: endpoints.map(({ address }) => address),
    conditions: endpoints.map(({ endpoint }) => String.fromCharCode(conditionsOf(endpoint))).join(''),
    nodeNames: endpoints.map(({ endpoint }) => endpoint.nodeName ?? ''),
    zoneHints: hintsColumn(endpoints, ({ endpoint }) => endpoint.zoneHints),
    nodeHints: hintsColumn(endpoints, ({ endpoint }) => endpoint.nodeHints),
  }
}

/** Whether two records of the same slice say the same. */
export function sameRecord(a: SliceRecord, b: SliceRecord): boolean {
  return (
    a.service === b.service &&
    a.conditions === b.conditions &&
    sameStrings(a.addresses, b.addresses) &&
    sameStrings(a.nodeNames, b.nodeNames) &&
    a.ports.length === b.ports.length &&
    a.ports.every((port, i) => samePort(port, b.ports[i])) &&
    sameHints(a.zoneHints, b.zoneHints) &&
    sameHints(a.nodeHints, b.nodeHints)
  )
}

/**
 * Which of two endpoints with the same address and port is the one to believe: the higher. A terminating pod's address
 * may already belong to a new pod, so the one that is not terminating wins, whatever else is true of it.
 */
export function credibility(conditions: number): number {
  return (
    ((conditions & TERMINATING) === 0 ? 4 : 0) +
    ((conditions & READY) === 0 ? 0 : 2) +
    ((conditions & SERVING) === 0 ? 0 : 1)
  )
}

interface ReadEndpoint {
  readonly bytes: Bytes
  readonly address: string
  readonly endpoint: SliceEndpoint
}

function uniqueEndpoints(endpoints: readonly SliceEndpoint[], family: Family, problems: string[]): ReadEndpoint[] {
  const read: ReadEndpoint[] = []
  const refused: string[] = []
  for (const endpoint of endpoints) {
    const address = parseAddress(endpoint.address)
    if (address === undefined || !isOfFamily(address.bytes, family)) refused.push(endpoint.address)
    else read.push({ bytes: address.bytes, address: address.text, endpoint })
  }
  if (refused.length > 0) {
    const more = refused.length > 1 ? ` (and ${refused.length - 1} more)` : ''
    problems.push(`endpoint address ${quote(refused[0] ?? '')}${more} is not an IPv${family} address and is ignored`)
  }
  read.sort(
    (a, b) =>
      compareBytes(a.bytes, b.bytes) || credibility(conditionsOf(b.endpoint)) - credibility(conditionsOf(a.endpoint)),
  )
  return read.filter(({ bytes }, i) => i === 0 || bytes !== read[i - 1]?.bytes)
}

function conditionsOf(endpoint: SliceEndpoint): number {
  return (endpoint.ready ? READY : 0) | (endpoint.serving ? SERVING : 0) | (endpoint.terminating ? TERMINATING : 0)
}

function isUsablePort(port: EndpointPort, problems: string[]): boolean {
  const name = quote(port.name)
  if (port.port === undefined) problems.push(`port ${name} has no number and is ignored`)
  else if (!isPortNumber(port.port)) problems.push(`port ${name} has the invalid number ${port.port} and is ignored`)
  else if (!isProtocol(port.protocol)) problems.push(`port ${name} has an unknown protocol and is ignored`)
  else return true
  return false
}

function hintsColumn(
  endpoints: readonly ReadEndpoint[],
  hintsOf: (endpoint: ReadEndpoint) => readonly string[] | undefined,
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
