// The addresses of a sandbox. Ranges look like those of a real cluster; each of up to 64 sandboxes on a machine has
// its own, by number. Lists have IPv4 first, then IPv6 when there is dual stack.

import { canonicalIp, cidrContains, formatCidr, parseCidr, type Cidr, type Family } from '../../../src/lib/ip.ts'

/** How many sandboxes one machine can have. */
export const MAX_SANDBOXES = 64
export const MAX_NODES = 100

/** Of one family, by number of the sandbox: what its addresses begin with. */
interface Prefixes {
  /** Two bytes, or three groups. */
  readonly pods: string
  readonly services: string
  /** Three bytes, or three groups. */
  readonly fabric: string
}

export interface AddressPlan {
  readonly index: number
  readonly families: readonly Family[]
  readonly podRanges: readonly string[]
  readonly serviceRanges: readonly string[]
  readonly loadBalancerRanges: readonly string[]
  /** The network that connects the nodes with each other and with the machine. */
  readonly fabricRanges: readonly string[]
  /** This machine's own addresses in that network. */
  readonly machine: readonly string[]
  /** Where the API server listens; also the nodes' default gateway. */
  readonly controlPlane: readonly string[]
}

export interface NodeAddresses {
  readonly name: string
  readonly addresses: readonly string[]
  readonly podRanges: readonly string[]
  /** The addresses of the node's bridge: its pods' default gateway. */
  readonly gateways: readonly string[]
}

export function planAddresses(index: number, families: readonly Family[]): AddressPlan {
  const each = eachFamily(index, families)
  return {
    index,
    families,
    podRanges: each(({ pods }, family) => (family === 4 ? `${pods}.0.0/16` : `${pods}::/48`)),
    serviceRanges: each(({ services }, family) => (family === 4 ? `${services}.0.0/16` : `${services}::/112`)),
    loadBalancerRanges: each(({ fabric }, family) => (family === 4 ? `${fabric}.128/25` : `${fabric}:1::/112`)),
    fabricRanges: each(({ fabric }, family) => (family === 4 ? `${fabric}.0/25` : `${fabric}::/64`)),
    machine: each(({ fabric }, family) => (family === 4 ? `${fabric}.1` : `${fabric}::1`)),
    controlPlane: each(({ fabric }, family) => (family === 4 ? `${fabric}.2` : `${fabric}::2`)),
  }
}

/** The n-th node, counted from 1. */
export function planNode({ index, families }: AddressPlan, n: number): NodeAddresses {
  const each = eachFamily(index, families)
  const host = 10 + n
  return {
    name: `node-${n}`,
    addresses: each(({ fabric }, family) => (family === 4 ? `${fabric}.${host}` : `${fabric}::${host}`)),
    podRanges: each(({ pods }, family) => (family === 4 ? `${pods}.${n}.0/24` : `${pods}:${n}::/64`)),
    gateways: each(({ pods }, family) => (family === 4 ? `${pods}.${n}.1` : `${pods}:${n}::1`)),
  }
}

/** Writes an address or a range of each family, and gives it in its canonical form. */
function eachFamily(index: number, families: readonly Family[]) {
  return (write: (prefixes: Prefixes, family: Family) => string): string[] =>
    families.map((family) => {
      const text = write(prefixesOf(index, family), family)
      return text.includes('/') ? formatCidr(parseCidr(text)!) : canonicalIp(text)!
    })
}

function prefixesOf(index: number, family: Family): Prefixes {
  if (family === 4) return { pods: `10.${244 - index}`, services: `10.${96 + index}`, fabric: `172.30.${index}` }
  const own = index.toString(16)
  return { pods: `fd00:244:${own}`, services: `fd00:96:${own}`, fabric: `fd00:30:${own}` }
}

/** How a plan gets on with the ranges that the machine already has routes to. */
export type Fit =
  | 'free'
  /** Only part of larger ranges (a VPN's 10.0.0.0/8): the sandbox takes its part of them. */
  | 'within'
  | 'taken'

export function fitOf(plan: AddressPlan, used: readonly Cidr[]): Fit {
  let fit: Fit = 'free'
  for (const text of allRanges(plan)) {
    const range = parseCidr(text)!
    for (const other of used) {
      if (other.family !== range.family) continue
      if (cidrContains(range, other.network) && other.prefix >= range.prefix) return 'taken'
      if (cidrContains(other, range.network)) fit = 'within'
    }
  }
  return fit
}

function allRanges(plan: AddressPlan): string[] {
  return [plan.podRanges, plan.serviceRanges, plan.loadBalancerRanges, plan.fabricRanges].flat()
}
