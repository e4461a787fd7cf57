// Addresses in IPVS messages: union nf_inet_addr, sixteen bytes whatever the family.

import { familyOf, formatIp, parseIp, type Bytes, type Family, asBytes } from '../../lib/ip.ts'
import { bytes, type Codec, mapped, named } from '../../netlink/attributes.ts'
import { ne16 } from '../../netlink/generic-messages.ts'

const AF_INET = 2
const AF_INET6 = 10
const UNION_LENGTH = 16

export const addressFamily: Codec<Family> = mapped(
  ne16,
  (family: Family) => (family === 4 ? AF_INET : AF_INET6),
  (number) => (number === AF_INET ? 4 : number === AF_INET6 ? 6 : undefined),
)

/** As it is on the wire; which family it is stands elsewhere in the message. */
export const addressUnion: Codec<Bytes> = bytes

export function encodeAddress(address: string): Bytes {
  const parsed = parseIp(address)
  if (parsed === undefined) throw new TypeError(`Cannot encode ${JSON.stringify(address)}: not an IP address`)
  return familyOf(parsed) === 4 ? asBytes(parsed + '\0'.repeat(UNION_LENGTH - 4)) : parsed
}

export function decodeAddress(union: Bytes, family: Family): string {
  return formatIp(family === 4 ? union.slice(0, 4) : union)
}

export const transport: Codec<'TCP' | 'UDP' | 'SCTP'> = named(ne16, { TCP: 6, UDP: 17, SCTP: 132 })
