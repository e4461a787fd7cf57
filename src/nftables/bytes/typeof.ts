// How nft remembers that a set was declared by example: `typeof ip daddr . th dport` instead of `type ipv4_addr .
// inet_service`. Integers have no other way to be declared, and without this nft cannot print a set that holds them.
//
// The kernel keeps these bytes and does not read them. The numbers are nft's own: enum expr_types in
// include/expression.h, enum proto_desc_id in include/proto.h, and the order of the fields in src/proto.c.

import type { Bytes } from '../../lib/ip.ts'
import type { FieldType } from '../types.ts'
import { NFT_META_L4PROTO, NFT_NG_RANDOM } from './uapi.ts'
import { encodeUdata, type Udata, udata32 } from './userdata.ts'

const EXPR_VERDICT = 1
const EXPR_PAYLOAD = 7
const EXPR_META = 9
const EXPR_CONCAT = 13
const EXPR_NUMGEN = 23
const PROTO_DESC_TH = 11
const PROTO_DESC_IP = 12
const PROTO_DESC_IP6 = 13
const TH_DPORT = 2
const IP_DADDR = 12
const IP6_DADDR = 9

/** In an expression: its type, and what it holds. */
const TYPEOF_EXPR = 0
const TYPEOF_DATA = 1

/** An expression whose value has the type of the field. */
const EXAMPLES: Readonly<Record<FieldType, Bytes>> = {
  ipv4_addr: example(EXPR_PAYLOAD, [PROTO_DESC_IP, IP_DADDR]),
  ipv6_addr: example(EXPR_PAYLOAD, [PROTO_DESC_IP6, IP6_DADDR]),
  inet_proto: example(EXPR_META, [NFT_META_L4PROTO]),
  inet_service: example(EXPR_PAYLOAD, [PROTO_DESC_TH, TH_DPORT]),
  // numgen random mod 2 offset 0: any number can stand in the key, whatever the modulus says here.
  integer: example(EXPR_NUMGEN, [NFT_NG_RANDOM, 2, 0]),
}

/** An integer can only be declared by example. */
export function needsTypeof(fields: readonly FieldType[]): boolean {
  return fields.includes('integer')
}

/** `typeof` these fields. */
export function typeofFields(fields: readonly FieldType[]): Bytes {
  if (fields.length === 1) return EXAMPLES[fields[0]!]
  return typeofExpression(
    EXPR_CONCAT,
    fields.map((field, i) => ({ type: i, value: EXAMPLES[field] })),
  )
}

/** What nft sends for a concatenation that is declared by its types: a concatenation of nothing. */
export function emptyConcat(): Bytes {
  return typeofExpression(EXPR_CONCAT, [])
}

/** `typeof ... : verdict`, for a verdict map whose key is declared by example. */
export function typeofVerdict(): Bytes {
  return typeofExpression(EXPR_VERDICT, [])
}

function example(expr: number, parameters: readonly number[]): Bytes {
  return typeofExpression(
    expr,
    parameters.map((value, i) => udata32(i, value)),
  )
}

function typeofExpression(expr: number, data: readonly Udata[]): Bytes {
  return encodeUdata([udata32(TYPEOF_EXPR, expr), { type: TYPEOF_DATA, value: encodeUdata(data) }])
}
