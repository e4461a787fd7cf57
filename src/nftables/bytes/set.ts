// Sets and maps. net/netfilter/nf_tables_api.c, nft_set_policy. What nft needs to print them is in the types and the
// userdata, which the kernel only keeps.

import type { Bytes } from '../../lib/ip.ts'
import type { FieldType, NftSet } from '../types.ts'
import { attr, be32, be64number, bytes, cstring, type Infer, list, nest, opt } from '../../netlink/attributes.ts'
import * as uapi from './uapi.ts'
import { BYTE_ORDER, FIELD_TYPES, fieldsLength, fieldTypesOf, typeId } from './field-type.ts'
import { emptyConcat, needsTypeof, typeofFields, typeofVerdict } from './typeof.ts'
import { encodeUdata, decodeComment, type Udata, udata32, udataComment } from './userdata.ts'

/** NFT_DATA_VERDICT: the data type of verdict maps. */
const VERDICT_TYPE = 0xffffff00

/** enum nftnl_udata_set_types in libnftnl's include/libnftnl/udata.h */
const UDATA_KEY_BYTE_ORDER = 0
const UDATA_DATA_BYTE_ORDER = 1
const UDATA_KEY_TYPEOF = 3
const UDATA_DATA_TYPEOF = 4
const UDATA_DATA_INTERVAL = 6
const UDATA_SET_COMMENT = 7

export const setAttributes = nest({
  table: attr(uapi.NFTA_SET_TABLE, cstring),
  name: attr(uapi.NFTA_SET_NAME, cstring),
  flags: opt(uapi.NFTA_SET_FLAGS, be32),
  keyType: opt(uapi.NFTA_SET_KEY_TYPE, be32),
  keyLength: opt(uapi.NFTA_SET_KEY_LEN, be32),
  dataType: opt(uapi.NFTA_SET_DATA_TYPE, be32),
  dataLength: opt(uapi.NFTA_SET_DATA_LEN, be32),
  id: opt(uapi.NFTA_SET_ID, be32),
  desc: opt(
    uapi.NFTA_SET_DESC,
    nest({
      size: opt(uapi.NFTA_SET_DESC_SIZE, be32),
      concat: opt(
        uapi.NFTA_SET_DESC_CONCAT,
        list(uapi.NFTA_LIST_ELEM, nest({ length: attr(uapi.NFTA_SET_FIELD_LEN, be32) })),
      ),
    }),
  ),
  timeoutMs: opt(uapi.NFTA_SET_TIMEOUT, be64number),
  userdata: opt(uapi.NFTA_SET_USERDATA, bytes),
})

export type SetAttributes = Infer<typeof setAttributes>

/**
 * The size that the kernel itself gives a dynamic set, with the first rule that adds to it. The set then begins small and grows.
 * Where a size is given, the kernel makes a table for so many elements at once, a megabyte and milliseconds for each set.
 */
const DYNAMIC_SIZE = 65_535

/** `id` is any number that no other set of the same transaction has. */
export function setToAttributes(table: string, set: NftSet, id: number): SetAttributes {
  const { name, key, data, dynamic, timeoutMs } = set
  const size = dynamic && set.size === DYNAMIC_SIZE ? undefined : set.size
  const concat =
    set.interval && key.length > 1 ? { concat: key.map((field) => ({ length: FIELD_TYPES[field].length })) } : {}
  const desc = { ...(size === undefined ? {} : { size }), ...concat }
  return {
    table,
    name,
    flags: setFlags(set),
    keyType: typeId(key),
    keyLength: fieldsLength(key),
    ...(data === undefined ? {} : dataAttributes(data)),
    id,
    ...(Object.keys(desc).length === 0 ? {} : { desc }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    userdata: setUserdata(set),
  }
}

/** An anonymous set is a part of its rule: `numgen random mod 2 map { 0 : ... }`. */
export function isAnonymous({ flags = 0 }: SetAttributes): boolean {
  return (flags & uapi.NFT_SET_ANONYMOUS) !== 0
}

export function setFromAttributes(wire: SetAttributes): NftSet {
  const flags = wire.flags ?? 0
  const dynamic = (flags & uapi.NFT_SET_EVAL) !== 0
  const isTimeless = dynamic && (flags & uapi.NFT_SET_TIMEOUT) === 0
  return {
    name: wire.name,
    key: fieldTypesOf(wire.keyType ?? 0),
    data: (flags & uapi.NFT_SET_MAP) === 0 ? undefined : dataFields(wire.dataType ?? 0),
    interval: (flags & uapi.NFT_SET_INTERVAL) !== 0,
    dynamic,
    ...(isTimeless ? { timeless: true } : {}),
    timeoutMs: wire.timeoutMs,
    size: wire.desc?.size ?? (dynamic ? DYNAMIC_SIZE : undefined),
    comment: decodeComment(UDATA_SET_COMMENT, wire.userdata),
  }
}

function setFlags({ key, data, interval, dynamic, timeless }: NftSet): number {
  return (
    (interval ? uapi.NFT_SET_INTERVAL : 0) |
    (interval && key.length > 1 ? uapi.NFT_SET_CONCAT : 0) |
    (data === undefined ? 0 : uapi.NFT_SET_MAP) |
    (dynamic ? uapi.NFT_SET_EVAL : 0) |
    (dynamic && timeless !== true ? uapi.NFT_SET_TIMEOUT : 0)
  )
}

function dataAttributes(data: readonly FieldType[] | 'verdict'): { dataType: number; dataLength: number } {
  if (data === 'verdict') return { dataType: VERDICT_TYPE, dataLength: 0 }
  return { dataType: typeId(data), dataLength: fieldsLength(data) }
}

function dataFields(type: number): readonly FieldType[] | 'verdict' {
  return type === VERDICT_TYPE ? 'verdict' : fieldTypesOf(type)
}

/** In the order of nft, so that what we write is what nft writes. */
function setUserdata({ key, data, comment }: NftSet): Bytes {
  const fields = data === 'verdict' ? [] : (data ?? [])
  const byExample = needsTypeof(key) || needsTypeof(fields)
  const list: Udata[] = [udata32(UDATA_KEY_BYTE_ORDER, byteOrder(key))]
  if (data !== undefined) list.push(udata32(UDATA_DATA_BYTE_ORDER, byteOrder(fields)))
  list.push(...typeofEntry(UDATA_KEY_TYPEOF, key, byExample), ...typeofEntry(UDATA_DATA_TYPEOF, fields, byExample))
  if (data === 'verdict' && byExample) list.push({ type: UDATA_DATA_TYPEOF, value: typeofVerdict() })
  if (data !== undefined) list.push(udata32(UDATA_DATA_INTERVAL, 0))
  if (comment !== undefined) list.push(udataComment(UDATA_SET_COMMENT, comment))
  return encodeUdata(list)
}

function byteOrder(fields: readonly FieldType[]): number {
  return BYTE_ORDER[fields.length === 1 ? FIELD_TYPES[fields[0]!].byteOrder : 'none']
}

function typeofEntry(type: number, fields: readonly FieldType[], byExample: boolean): Udata[] {
  if (fields.length === 0) return []
  if (byExample) return [{ type, value: typeofFields(fields) }]
  return fields.length === 1 ? [] : [{ type, value: emptyConcat() }]
}
