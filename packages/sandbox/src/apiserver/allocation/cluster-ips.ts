// Cluster IPs: which ranges there are, which addresses are taken. An address is taken when an IPAddress object of its name
// exists; the ranges are the ServiceCIDR objects.

import { canonicalIp, ipFamily } from '../../../../../src/lib/ip.ts'
import { isDeleting } from '../objects/meta.ts'
import { ipBand, pickFree } from './pick.ts'
import { IpRange } from './ip-range.ts'
import type { Collection } from '../store/collection.ts'
import type { IPAddress, ServiceCIDR } from '../objects/small.ts'
import type { IPFamily } from '../objects/service.ts'

/** The range that the cluster was made with. Its first family is that of services which name none. */
export const defaultCidrName = 'kubernetes'

export class ClusterIps {
  readonly #cidrs: Collection<ServiceCIDR>
  readonly #addresses: Collection<IPAddress>

  constructor(cidrs: Collection<ServiceCIDR>, addresses: Collection<IPAddress>) {
    this.#cidrs = cidrs
    this.#addresses = addresses
  }

  families(): IPFamily[] {
    const first = this.#cidrs.get(defaultCidrName)
    const all = [...(first === undefined ? [] : [first]), ...this.#cidrs.list()]
    const names = all.flatMap(({ object }) => (object.spec.cidrs ?? []).map((cidr) => familyOf(cidr)))
    return [...new Set(names)]
  }

  pick(family: IPFamily): string | undefined {
    for (const range of this.#ranges(family)) {
      const isFree = (offset: number): boolean => this.#addresses.get(range.at(offset)) === undefined
      const offset = pickFree({ size: range.size, isFree }, ipBand)
      if (offset !== undefined) return range.at(offset)
    }
    return undefined
  }

  /** Why a service cannot have an address that it asks for; undefined when it can. */
  problem(address: string, parent: { readonly namespace: string; readonly name: string }): string | undefined {
    const family = ipFamily(address) === 6 ? 'IPv6' : 'IPv4'
    const ranges = this.#ranges(family)
    if (!ranges.some((range) => range.contains(address))) {
      const list = this.#texts(family).join(', ')
      return `provided IP is not in the valid range. The range of valid IPs is ${list === '' ? 'empty' : list}`
    }
    const owner = this.#addresses.get(canonicalIp(address) ?? address)?.object.spec.parentRef
    if (owner === undefined || (owner.namespace === parent.namespace && owner.name === parent.name)) return undefined
    return 'provided IP is already allocated'
  }

  #texts(family: IPFamily): string[] {
    return this.#cidrs
      .list()
      .filter(({ object }) => !isDeleting(object))
      .flatMap(({ object }) => object.spec.cidrs ?? [])
      .filter((cidr) => familyOf(cidr) === family)
  }

  #ranges(family: IPFamily): IpRange[] {
    return this.#texts(family).map((text) => IpRange.parse(text))
  }
}

function familyOf(cidr: string): IPFamily {
  return cidr.includes(':') ? 'IPv6' : 'IPv4'
}
