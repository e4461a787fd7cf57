// The addresses of a CIDR, by number.

import { cidrContains, formatIp, parseCidr, parseIp, bytesOf } from '../../../../../src/lib/ip.ts'
import type { Bytes, Cidr } from '../../../../../src/lib/ip.ts'

/** The addresses of a range that can be given out: without the network's own and, for IPv4, its broadcast address. */
export class IpRange {
  readonly cidr: Cidr
  readonly size: number

  constructor(cidr: Cidr) {
    this.cidr = cidr
    const hostBits = cidr.network.length * 8 - cidr.prefix
    // No cluster fills 2^40 addresses; beyond it numbers would lose precision.
    const all = 2 ** Math.min(hostBits, 40)
    this.size = Math.max(0, all - (cidr.family === 4 ? 2 : 1))
  }

  static parse(text: string): IpRange {
    const cidr = parseCidr(text)
    if (cidr === undefined) throw new Error(`Cannot parse the range ${text}: it must be a CIDR such as 10.96.0.0/16`)
    return new IpRange(cidr)
  }

  at(offset: number): string {
    return formatIp(addOffset(this.cidr.network, offset + 1))
  }

  contains(address: string): boolean {
    const bytes = parseIp(address)
    if (bytes === undefined || !cidrContains(this.cidr, bytes)) return false
    if (bytes === this.cidr.network) return false
    return this.cidr.family === 6 || bytes !== addOffset(this.cidr.network, this.size + 1)
  }
}

function addOffset(network: Bytes, offset: number): Bytes {
  const bytes = Array.from({ length: network.length }, (_, i) => network.charCodeAt(i))
  let carry = offset
  for (let i = bytes.length - 1; i >= 0 && carry > 0; i--) {
    const sum = bytes[i]! + carry
    bytes[i] = sum % 256
    carry = Math.floor(sum / 256)
  }
  return bytesOf(...bytes)
}
