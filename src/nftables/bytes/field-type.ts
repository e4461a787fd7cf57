// The types of the fields of keys and values, as nft numbers them (enum datatypes in nftables' include/datatype.h).
// The kernel does not look at these numbers: it keeps them for nft, which prints elements by them.

import type { FieldType } from '../types.ts'

/** The byte orders as nft numbers them in the userdata of a set. A concatenation has none. */
export const BYTE_ORDER = { none: 0, host: 1, big: 2 } as const

interface FieldTypeInfo {
  readonly id: number
  /** Without padding. */
  readonly length: number
  readonly byteOrder: keyof typeof BYTE_ORDER
}

export const FIELD_TYPES: Readonly<Record<FieldType, FieldTypeInfo>> = {
  // The number of `mark`, a host integer of 32 bits. nft's own `integer` has no size: nft prints it only where it understands
  // the `typeof` of the set as well, and versions before 1.0.6, which do not, abort instead, for every table of the machine.
  integer: { id: 19, length: 4, byteOrder: 'host' },
  ipv4_addr: { id: 7, length: 4, byteOrder: 'big' },
  ipv6_addr: { id: 8, length: 16, byteOrder: 'big' },
  inet_proto: { id: 12, length: 1, byteOrder: 'big' },
  inet_service: { id: 13, length: 2, byteOrder: 'big' },
}

/** In a concatenation, each type takes this many bits of the type number. */
const BITS_PER_TYPE = 6
const INTEGER_OF_NFT = 4
const NAME_BY_ID = new Map<number, FieldType>([
  ...Object.entries(FIELD_TYPES).map(([name, { id }]) => [id, name as FieldType] as const),
  // What nft writes when it loads our table from its own listing.
  [INTEGER_OF_NFT, 'integer'],
])

/** The number of a type, or of a concatenation of types: NFTA_SET_KEY_TYPE. */
export function typeId(fields: readonly FieldType[]): number {
  let id = 0
  for (const field of fields) id = (id << BITS_PER_TYPE) | FIELD_TYPES[field].id
  return id
}

/** The types that a number stands for; empty when one of them is none of ours. */
export function fieldTypesOf(id: number): readonly FieldType[] {
  const fields: FieldType[] = []
  for (let rest = id; rest > 0; rest >>>= BITS_PER_TYPE) {
    const name = NAME_BY_ID.get(rest & ((1 << BITS_PER_TYPE) - 1))
    if (name === undefined) return []
    fields.unshift(name)
  }
  return fields
}

/** How long a key or value is in the kernel: a single field is not padded, the fields of a concatenation are. */
export function fieldsLength(fields: readonly FieldType[]): number {
  if (fields.length === 1) return FIELD_TYPES[fields[0]!].length
  return paddedLength(fields)
}

/** How long a key or value is in Element: each field is padded to a multiple of 4 bytes. */
export function paddedLength(fields: readonly FieldType[]): number {
  let length = 0
  for (const field of fields) length += (FIELD_TYPES[field].length + 3) & ~3
  return length
}
