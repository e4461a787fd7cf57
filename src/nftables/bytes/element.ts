// Elements of sets and maps, as the kernel sees them. net/netfilter/nf_tables_api.c, nft_set_elem_policy
//
// The kernel's elements are not always ours. A set of ranges with a single field is stored as the points where ranges
// begin and where they have ended: [a, b] is the element a and the element b + 1 with the flag INTERVAL_END; a range that
// runs to the last key has no end. A set of ranges with several fields stores KEY and KEY_END in one element.
//
// A planner merges ranges of a single field that overlap or follow each other: the kernel refuses overlaps, and
// where one range ends at the point where the next begins, deleting one of them can take a point from the other.

import { type Bytes, asBytes } from '../../lib/ip.ts'
import type { Element, FieldType, NftSet } from '../types.ts'
import { attr, be32, bytes, cstring, type Infer, list, nest, opt } from '../../netlink/attributes.ts'
import * as uapi from './uapi.ts'
import { data, dataValue } from './data.ts'
import { fieldsLength, paddedLength } from './field-type.ts'
import { encodeUdata, udata32 } from './userdata.ts'

export const elementAttributes = nest({
  flags: opt(uapi.NFTA_SET_ELEM_FLAGS, be32),
  key: opt(uapi.NFTA_SET_ELEM_KEY, dataValue),
  keyEnd: opt(uapi.NFTA_SET_ELEM_KEY_END, dataValue),
  data: opt(uapi.NFTA_SET_ELEM_DATA, data),
  userdata: opt(uapi.NFTA_SET_ELEM_USERDATA, bytes),
})

export const elementListAttributes = nest({
  table: attr(uapi.NFTA_SET_ELEM_LIST_TABLE, cstring),
  set: attr(uapi.NFTA_SET_ELEM_LIST_SET, cstring),
  elements: opt(uapi.NFTA_SET_ELEM_LIST_ELEMENTS, list(uapi.NFTA_LIST_ELEM, elementAttributes)),
})

export type ElementAttributes = Infer<typeof elementAttributes>

/** nft's note to itself that a range has no end because it runs to the last key (NFTNL_UDATA_SET_ELEM_FLAGS). */
const OPEN_INTERVAL = encodeUdata([udata32(1, 1)])

/** Whether ranges are stored as points. */
export function storesPoints(set: NftSet): boolean {
  return set.interval && set.key.length === 1
}

/** What the kernel gets for an element: to be added, or, by its key alone, deleted. */
export function elementToAttributes(set: NftSet, element: Element, action: 'add' | 'delete'): ElementAttributes[] {
  if (storesPoints(set)) return rangeToPoints(set, element)
  const key = fromPadded(set.key, element.key)
  const keyEnd = set.interval ? { keyEnd: element.keyEnd ?? element.key } : {}
  if (action === 'delete' || set.data === undefined) return [{ key, ...keyEnd }]
  return [{ key, ...keyEnd, data: elementData(set, element) }]
}

/**
 * All elements of a set, as they are listed. In a set of ranges with one field they may come in any order, but all of
 * them are needed: the kernel does not say which end belongs to which beginning.
 */
export function elementsFromAttributes(set: NftSet, wire: readonly ElementAttributes[]): Element[] {
  if (storesPoints(set)) return pointsToRanges(set, wire)
  return wire.map((attributes) => elementFromAttributes(set, attributes)).filter((element) => element !== undefined)
}

/** One element of a set that does not store points; undefined for the catch-all, which has no key. */
export function elementFromAttributes(set: NftSet, { key, keyEnd, data }: ElementAttributes): Element | undefined {
  if (key === undefined) return undefined
  const element = { key: toPadded(set.key, key), ...(set.interval ? { keyEnd: keyEnd ?? key } : {}) }
  return { ...element, ...decodeData(set, data) }
}

function elementData(set: NftSet, element: Element): NonNullable<ElementAttributes['data']> {
  if (set.data === 'verdict') {
    if (element.verdict === undefined) throw missing(set, 'verdict')
    return { verdict: element.verdict }
  }
  if (element.data === undefined) throw missing(set, 'data')
  return { value: fromPadded(set.data ?? [], element.data) }
}

function missing(set: NftSet, field: 'data' | 'verdict'): TypeError {
  return new TypeError(`Cannot write an element of map ${set.name}: it has no ${field}`)
}

/** A verdict that is not a jump is none of ours: such an element has neither data nor verdict. */
function decodeData(set: NftSet, read: ElementAttributes['data']): Partial<Element> {
  if (read?.verdict !== undefined && 'chain' in read.verdict) return { verdict: read.verdict }
  if (read?.value !== undefined && set.data !== undefined && set.data !== 'verdict') {
    return { data: toPadded(set.data, read.value) }
  }
  return {}
}

function rangeToPoints(set: NftSet, { key, keyEnd = key }: Element): ElementAttributes[] {
  const first = fromPadded(set.key, key)
  const after = successor(fromPadded(set.key, keyEnd))
  if (after === undefined) return [{ key: first, userdata: OPEN_INTERVAL }]
  return [{ key: first }, { flags: uapi.NFT_SET_ELEM_INTERVAL_END, key: after }]
}

function pointsToRanges(set: NftSet, wire: readonly ElementAttributes[]): Element[] {
  const points = wire
    .filter((point) => point.key !== undefined && ((point.flags ?? 0) & uapi.NFT_SET_ELEM_CATCHALL) === 0)
    .map(({ key = '', flags = 0 }) => ({ key, isEnd: (flags & uapi.NFT_SET_ELEM_INTERVAL_END) !== 0 }))
  // Where one range ends and the next begins at the same point, the end comes first.
  points.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : Number(b.isEnd) - Number(a.isEnd)))
  const last = '\xff'.repeat(fieldsLength(set.key))
  const ranges: Element[] = []
  for (const [i, { key, isEnd }] of points.entries()) {
    if (isEnd) continue
    // nft leaves out the end of a range that another one follows at once.
    const next = points[i + 1]?.key
    const keyEnd = next === undefined ? last : predecessor(asBytes(next))
    ranges.push({ key: toPadded(set.key, asBytes(key)), keyEnd: toPadded(set.key, asBytes(keyEnd)) })
  }
  return ranges
}

/** Single fields are padded in Element but not in the kernel. */
function fromPadded(fields: readonly FieldType[], padded: Bytes): Bytes {
  return fields.length === 1 ? padded.slice(0, fieldsLength(fields)) : padded
}

function toPadded(fields: readonly FieldType[], value: Bytes): Bytes {
  return fields.length === 1 ? value.padEnd(paddedLength(fields), '\0') : value
}

/** The key after this one; undefined after the last. */
function successor(key: Bytes): Bytes | undefined {
  for (let i = key.length - 1; i >= 0; i--) {
    const byte = key.charCodeAt(i)
    if (byte < 0xff) return asBytes(key.slice(0, i) + String.fromCharCode(byte + 1) + '\0'.repeat(key.length - 1 - i))
  }
  return undefined
}

function predecessor(key: Bytes): Bytes {
  for (let i = key.length - 1; i >= 0; i--) {
    const byte = key.charCodeAt(i)
    if (byte > 0) return asBytes(key.slice(0, i) + String.fromCharCode(byte - 1) + '\xff'.repeat(key.length - 1 - i))
  }
  return key
}
