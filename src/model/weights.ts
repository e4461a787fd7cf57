// How much of a service's traffic each endpoint gets, from an annotation of the Service.
//
//     service.kube-proxy-ts.io/endpoint-weights: "big-node=4, 10.1.0.7=0, 10.2.0.0/16=2, *=1"
//
// An endpoint is named by its address, by a range, or by its node; the most precise name counts. 0 takes it out of
// service: it keeps its connections and gets no new ones. Only modes that can weigh (ipvs) heed this.

import { maskBytes, parseCidr, parseIp, type Bytes, type Cidr } from '../lib/ip.ts'
import { Summary } from './summary.ts'
import { isObjectName, quote } from './valid.ts'

export const WEIGHTS_ANNOTATION = 'service.kube-proxy-ts.io/endpoint-weights'

/** The weight of endpoints that the annotation does not name. */
export const DEFAULT_WEIGHT = 1

/** The largest that kube-proxy's peers accept; the kernel would take more. */
const LARGEST_WEIGHT = 65535

export interface Weights {
  /** The annotation: two tables of the same text are the same. */
  readonly text: string
  readonly byAddress: ReadonlyMap<Bytes, number>
  /** By length of the prefix, the narrowest ranges first; then by network. An address costs one lookup per length. */
  readonly byRange: ReadonlyMap<number, ReadonlyMap<Bytes, number>>
  readonly byNode: ReadonlyMap<string, number>
  readonly others: number
}

/** Reads the annotation; undefined when there is none. Invalid parts go to `problems`. */
export function parseWeights(text: string | undefined, problems: string[]): Weights | undefined {
  if (text === undefined || text.trim() === '') return undefined
  const byAddress = new Map<Bytes, number>()
  const byRange = new Map<number, Map<Bytes, number>>()
  const byNode = new Map<string, number>()
  let others = DEFAULT_WEIGHT
  const bad = new Summary()
  for (const part of text.split(',')) {
    const [name = '', value = ''] = part.split('=').map((side) => side.trim())
    const weight = parseWeight(value)
    if (weight === undefined) {
      bad.add(() => `${about(part)}: must be NAME=WEIGHT, with a weight of 0 to ${LARGEST_WEIGHT}`)
      continue
    }
    const address = parseIp(name)
    const cidr = parseCidr(name)
    if (name === '*') others = weight
    else if (address !== undefined) byAddress.set(address, weight)
    else if (cidr !== undefined) addRange(byRange, cidr, weight)
    else if (isObjectName(name)) byNode.set(name, weight)
    else bad.add(() => `${about(part)}: its name must be an IP address, a CIDR, a node or *`)
  }
  bad.addTo(problems)
  const narrowestFirst = new Map([...byRange].sort(([a], [b]) => b - a))
  return { text, byAddress, byRange: narrowestFirst, byNode, others }
}

function about(part: string): string {
  return `annotation ${WEIGHTS_ANNOTATION}: ${quote(part.trim())} is ignored`
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
  if (!/^\d{1,5}$/.test(text)) return undefined
  const weight = Number(text)
  return weight <= LARGEST_WEIGHT ? weight : undefined
}
