// On which addresses of this machine node ports are open.

import { cidrContains, isLoopback, parseCidr, parseIp, ipBytes } from '../lib/ip.ts'
import type { Cidr, Family } from '../lib/ip.ts'
import { compareBytes, isOfFamily, parseAddress } from './address.ts'
import type { Address } from './address.ts'
import { isUnknown } from './node-ips.ts'
import type { NodePortAddresses } from './types.ts'

/**
 * `configured` is nodePortAddresses: CIDRs of both families and the words `primary`, `localhost`, `all`. Without an entry for
 * the family (`primary` is none where the node has no such address) all addresses are open. Otherwise the machine's addresses
 * that match; loopback addresses apart, which a packet from outside cannot have.
 */
export function planNodePortAddresses(
  configured: readonly string[],
  context: { readonly family: Family; readonly nodeIp: string; readonly machineAddresses: readonly string[] },
): NodePortAddresses {
  const { family } = context
  const cidrs = configured.flatMap((text) => expand(text, family, context.nodeIp))
  if (cidrs.length === 0 || cidrs.some(({ prefix }) => prefix === 0)) return { kind: 'all' }
  const matched = context.machineAddresses
    .map(parseAddress)
    .filter((address): address is Address => address !== undefined && isOfFamily(address.bytes, family))
    .filter(({ bytes }) => cidrs.some((cidr) => cidrContains(cidr, bytes)))
    .sort((a, b) => compareBytes(a.bytes, b.bytes))
    .filter(({ text }, i, sorted) => text !== sorted[i - 1]?.text)
  const addresses = matched.filter(({ bytes }) => !isLoopback(bytes)).map(({ text }) => text)
  const loopback = matched.filter(({ bytes }) => isLoopback(bytes)).map(({ text }) => text)
  return { kind: 'only', addresses, ...(loopback.length > 0 && { loopback }) }
}

/** The one loopback address of a family that the proxy can listen on. */
export const LOCALHOST = { 4: '127.0.0.1', 6: '::1' } as const

/**
 * Whether a range of loopback addresses contains the one that the proxy listens on. A range of all addresses does not count:
 * clusters have it that never asked for node ports on localhost.
 */
export function namesLocalhost(configured: readonly string[], family: Family): boolean {
  const localhost = ipBytes(LOCALHOST[family])
  return configured
    .flatMap((text) => expand(text, family, UNKNOWN_NODE))
    .some((cidr) => isLoopback(cidr.network) && cidrContains(cidr, localhost))
}

/** Whether there is an entry for the family. */
export function namesFamily(configured: readonly string[], family: Family, nodeIp: string): boolean {
  return configured.some((text) => expand(text, family, nodeIp).length > 0)
}

/** The addresses of this machine on which node ports are open, as a set. */
export function openNodePortAddresses(
  planned: NodePortAddresses,
  machineAddresses: readonly string[],
): ReadonlySet<string> {
  if (planned.kind === 'only') return new Set(planned.addresses)
  const open = new Set<string>()
  for (const text of machineAddresses) {
    const address = parseAddress(text)
    if (address !== undefined && !isLoopback(address.bytes)) open.add(address.text)
  }
  return open
}

const UNKNOWN_NODE = ''
const LOOPBACK = { 4: '127.0.0.0/8', 6: '::1/128' } as const
const EVERYTHING = { 4: '0.0.0.0/0', 6: '::/0' } as const

function expand(text: string, family: Family, nodeIp: string): Cidr[] {
  const cidr = parseCidr(cidrText(text, family, nodeIp))
  return cidr?.family === family ? [cidr] : []
}

function cidrText(text: string, family: Family, nodeIp: string): string {
  switch (text) {
    case 'primary':
      return isUnknown(nodeIp) ? '' : `${nodeIp}/${(parseIp(nodeIp)?.length ?? 0) * 8}`
    case 'localhost':
      return LOOPBACK[family]
    case 'all':
      return EVERYTHING[family]
    default:
      return text
  }
}
