// How much of a service's traffic each endpoint gets, from an annotation of the Service or of its EndpointSlices.
//
//     service.kube-proxy-ts.io/endpoint-weights: "big-node=4, 10.1.0.7=0, 10.2.0.0/16=50%, *=1"
//
// An endpoint is named by its address, by a range, or by its node; the most precise name counts. A weight alone is that of all
// endpoints. 100% is 1, what an endpoint weighs that nothing is said of. 0 takes an endpoint out of service: it keeps its
// connections and gets no new ones, as long as others weigh more.

import { maskBytes, parseCidr, parseIp, type Bytes, type Cidr } from '../lib/ip.ts'
import { isObjectName } from './valid.ts'

export const WEIGHTS_ANNOTATION = 'service.kube-proxy-ts.io/endpoint-weights'

/** The weight of endpoints that the annotation does not name. */
export const DEFAULT_WEIGHT = 1

/** The largest that kube-proxy's peers accept; the kernel would take more. */
export const LARGEST_WEIGHT = 65535

export interface Weights {
  /** The annotation: two tables of the same text are the same. */
  readonly text: string
  readonly byAddress: ReadonlyMap<Bytes, number>
  /** By length of the prefix, the narrowest ranges first; then by network. An address costs one lookup per length. */
  readonly byRange: ReadonlyMap<number, ReadonlyMap<Bytes, number>>
  readonly byNode: ReadonlyMap<string, number>
  readonly others: number
}

/** Undefined for an empty text. `refuse` takes invalid parts, and what is allowed there. */
export function parseWeights(text: string, refuse: (part: string, allowed: string) => void): Weights | undefined {
  if (text.trim() === '') return undefined
  const byAddress = new Map<Bytes, number>()
  const byRange = new Map<number, Map<Bytes, number>>()
  const byNode = new Map<string, number>()
  let others = DEFAULT_WEIGHT
  for (const each of text.split(',')) {
    const part = each.trim()
    const [name = '', value = ''] = part.includes('=') ? part.split('=').map((side) => side.trim()) : ['*', part]
    const weight = parseWeight(value)
    if (weight === undefined) {
      refuse(
        part,
        `must be NAME=WEIGHT or WEIGHT, with a weight of 0 to ${LARGEST_WEIGHT}, or 0% to ${LARGEST_WEIGHT}%`,
      )
      continue
    }
    const address = parseIp(name)
    const cidr = parseCidr(name)
    if (name === '*') others = weight
    else if (address !== undefined) byAddress.set(address, weight)
    else if (cidr !== undefined) addRange(byRange, cidr, weight)
    else if (isObjectName(name)) byNode.set(name, weight)
    else refuse(part, 'must name an IP address, a CIDR, a node or *')
  }
  const narrowestFirst = new Map([...byRange].sort(([a], [b]) => b - a))
  return { text, byAddress, byRange: narrowestFirst, byNode, others }
}

/** Of two weights for the same range the first counts. The families share prefixes, not networks: these differ in length. */
function addRange(byRange: Map<number, Map<Bytes, number>>, { prefix, network }: Cidr, weight: number): void {
  let networks = byRange.get(prefix)
  if (networks === undefined) byRange.set(prefix, (networks = new Map()))
  if (!networks.has(network)) networks.set(network, weight)
}

export function weightOf(
  weights: Weights,
  { address, nodeName }: { readonly address: Bytes; readonly nodeName: string },
): number {
  return (
    weights.byAddress.get(address) ?? weightOfRange(weights, address) ?? weights.byNode.get(nodeName) ?? weights.others
  )
}

function weightOfRange({ byRange }: Weights, address: Bytes): number | undefined {
  for (const [prefix, networks] of byRange) {
    const weight = networks.get(maskBytes(address, prefix))
    if (weight !== undefined) return weight
  }
  return undefined
}

function parseWeight(text: string): number | undefined {
  const [, digits, percent] = /^(\d{1,5})(%?)$/.exec(text) ?? []
  if (digits === undefined || Number(digits) > LARGEST_WEIGHT) return undefined
  return percent === '%' ? Number(digits) / 100 : Number(digits)
}
