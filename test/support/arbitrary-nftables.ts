// Arbitrary sets, elements and expressions, within what the types allow and we write.

import * as fc from 'fast-check'
import { type Bytes, asBytes, bytesOf } from '../../src/lib/ip.ts'
import type { Element, Expression, FieldType, NftFamily, NftSet } from '../../src/nftables/types.ts'

const FIELD_LENGTHS = { ipv4_addr: 4, ipv6_addr: 16, inet_proto: 1, inet_service: 2, integer: 4 } as const

export const arbitraryName: fc.Arbitrary<string> = fc.stringMatching(/^[a-z][a-z0-9-]{0,30}$/)

/** Short enough to stand beside any type of set: userdata has 256 bytes in all. */
export const arbitraryComment: fc.Arbitrary<string | undefined> = fc.option(
  fc
    .string({ unit: 'grapheme', maxLength: 10 })
    .filter((text) => !text.includes('\0') && Buffer.byteLength(text) <= 30),
  { nil: undefined },
)

export function arbitraryBytes(length: number): fc.Arbitrary<Bytes> {
  return fc.uint8Array({ minLength: length, maxLength: length }).map((bytes) => bytesOf(...bytes))
}

const fieldType = fc.constantFrom(...(Object.keys(FIELD_LENGTHS) as FieldType[]))
const fields = (maxLength: number) => fc.array(fieldType, { minLength: 1, maxLength })

const anySet = fc.record({
  name: arbitraryName,
  key: fields(4),
  data: fc.option(fc.oneof(fields(2), fc.constant('verdict' as const)), { nil: undefined }),
  interval: fc.boolean(),
  dynamic: fc.boolean(),
  timeoutMs: fc.option(fc.integer({ min: 1, max: 1_000_000 }), { nil: undefined }),
  size: fc.option(fc.integer({ min: 1, max: 100_000 }), { nil: undefined }),
  comment: arbitraryComment,
})

/** The kernel gives a dynamic set a size. */
export const arbitrarySet: fc.Arbitrary<NftSet> = anySet.map((set) => ({
  ...set,
  size: set.dynamic ? (set.size ?? 65_535) : set.size,
}))

function arbitraryField(type: FieldType): fc.Arbitrary<Bytes> {
  const length = FIELD_LENGTHS[type]
  return arbitraryBytes(length).map((bytes) => bytes.padEnd((length + 3) & ~3, '\0'))
}

/** Values of these fields in kernel layout. */
export function arbitraryFields(types: readonly FieldType[]): fc.Arbitrary<Bytes> {
  return fc.tuple(...types.map(arbitraryField)).map((fields) => asBytes(fields.join('')))
}

/** Ranges in which no field ends before it begins. */
function arbitraryRange(types: readonly FieldType[]): fc.Arbitrary<Element> {
  const ranges = types.map((type) =>
    fc
      .tuple(arbitraryField(type), arbitraryField(type))
      .map(([a, b]) => (a < b ? { first: a, last: b } : { first: b, last: a })),
  )
  return fc.tuple(...ranges).map((list) => ({
    key: asBytes(list.map(({ first }) => first).join('')),
    keyEnd: asBytes(list.map(({ last }) => last).join('')),
  }))
}

const jump = fc.record({ code: fc.constantFrom('jump' as const, 'goto' as const), chain: arbitraryName })

/** Elements as the set has them. */
export function arbitraryElement(set: NftSet): fc.Arbitrary<Element> {
  const keys = set.interval ? arbitraryRange(set.key) : arbitraryFields(set.key).map((key): Element => ({ key }))
  if (set.data === undefined) return keys
  if (set.data === 'verdict') return fc.tuple(keys, jump).map(([element, verdict]) => ({ ...element, verdict }))
  return fc.tuple(keys, arbitraryFields(set.data)).map(([element, data]) => ({ ...element, data }))
}

const register = fc.nat(15)
const family = fc.constantFrom<NftFamily>('ip', 'ip6')
const uint32 = fc.integer({ min: 0, max: 0xffffffff })
const value = fc.constantFrom(1, 2, 4, 5, 16).chain(arbitraryBytes)

type Kinds = { readonly [K in Expression['kind']]: fc.Arbitrary<Extract<Expression, { kind: K }>> }

/** One of each kind. A maximum register that is the minimum is the same as none, so none is made. */
export const arbitraryExpressions: Kinds = {
  payload: fc.record({
    kind: fc.constant('payload'),
    base: fc.constantFrom('network', 'transport'),
    offset: uint32,
    length: uint32,
    dreg: register,
  }),
  meta: fc.record({
    kind: fc.constant('meta'),
    key: fc.constantFrom('l4proto', 'mark', 'iifname', 'nfproto'),
    dreg: register,
  }),
  metaSet: fc.record({ kind: fc.constant('metaSet'), key: fc.constant('mark'), sreg: register }),
  ct: fc.record(
    {
      kind: fc.constant('ct'),
      key: fc.constantFrom(
        'direction',
        'state',
        'status',
        'saddr',
        'daddr',
        'protoSrc',
        'protoDst',
        'dstIp',
        'dstIp6',
        'srcIp',
      ),
      direction: fc.constantFrom('original', 'reply'),
      dreg: register,
    },
    { requiredKeys: ['kind', 'key', 'dreg'] },
  ),
  fib: fc.record({
    kind: fc.constant('fib'),
    source: fc.constantFrom('saddr', 'daddr'),
    result: fc.constant('type'),
    dreg: register,
  }),
  cmp: fc.record({ kind: fc.constant('cmp'), op: fc.constantFrom('eq', 'neq'), sreg: register, value }),
  bitwise: fc.record({
    kind: fc.constant('bitwise'),
    sreg: register,
    dreg: register,
    length: fc.constant(4),
    mask: arbitraryBytes(4),
    xor: arbitraryBytes(4),
  }),
  byteorder: fc.record({
    kind: fc.constant('byteorder'),
    op: fc.constantFrom('ntoh', 'hton'),
    sreg: register,
    dreg: register,
    length: fc.nat(16),
    size: fc.constantFrom(2, 4, 8),
  }),
  lookup: fc.record(
    {
      kind: fc.constant('lookup'),
      set: arbitraryName,
      sreg: register,
      dreg: fc.oneof(register, fc.constant('verdict' as const)),
      invert: fc.constant(true),
    },
    { requiredKeys: ['kind', 'set', 'sreg'] },
  ),
  numgen: fc.record({
    kind: fc.constant('numgen'),
    type: fc.constant('random'),
    modulus: uint32,
    offset: uint32,
    dreg: register,
  }),
  hash: fc.record({
    kind: fc.constant('hash'),
    sreg: register,
    length: uint32,
    seed: uint32,
    modulus: uint32,
    dreg: register,
  }),
  immediate: fc.record({ kind: fc.constant('immediate'), dreg: register, value }),
  verdict: fc.oneof(
    fc.record({ kind: fc.constant('verdict' as const), code: fc.constantFrom('accept', 'drop', 'return') }),
    fc.record({
      kind: fc.constant('verdict' as const),
      code: fc.constantFrom('jump' as const, 'goto' as const),
      chain: arbitraryName,
    }),
  ),
  dynset: fc.record(
    {
      kind: fc.constant('dynset'),
      op: fc.constantFrom('add', 'update'),
      set: arbitraryName,
      keyReg: register,
      dataReg: register,
      timeoutMs: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
      limits: fc.record({ kind: fc.constant('connlimit'), most: uint32, over: fc.boolean() }),
    },
    { requiredKeys: ['kind', 'op', 'set', 'keyReg'] },
  ),
  nat: fc.record(
    {
      kind: fc.constant('nat' as const),
      type: fc.constant('dnat' as const),
      family,
      addrMin: fc.nat(6),
      addrMax: fc.integer({ min: 7, max: 9 }),
      protoMin: fc.nat(6),
      protoMax: fc.integer({ min: 10, max: 12 }),
      flags: fc.constantFrom(0, 0x10),
    },
    { requiredKeys: ['kind', 'type', 'family', 'addrMin', 'flags'] },
  ),
  masq: fc.record({ kind: fc.constant('masq'), flags: fc.constantFrom(0, 0x10) }),
  redir: fc.record({ kind: fc.constant('redir'), protoMin: register, flags: fc.constantFrom(0, 2) }),
  reject: fc.record({ kind: fc.constant('reject'), type: fc.nat(2), code: fc.nat(255) }),
  log: fc.record({ kind: fc.constant('log'), group: fc.nat(0xffff), snaplen: uint32 }),
  limit: fc.record({
    kind: fc.constant('limit'),
    perSecond: fc.maxSafeNat(),
    burst: uint32,
    over: fc.boolean(),
  }),
  connlimit: fc.record({ kind: fc.constant('connlimit'), most: uint32, over: fc.boolean() }),
  counter: fc.record({
    kind: fc.constant('counter'),
    packets: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
    bytes: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
  }),
  unknown: fc.record({
    kind: fc.constant('unknown'),
    name: fc.constantFrom('limit', 'quota', 'last'),
    attributes: fc.constantFrom(asBytes(''), asBytes('\x08\0\x01\0\0\0\0\x05')),
  }),
}

export const arbitraryExpression: fc.Arbitrary<Expression> = fc.oneof(...Object.values(arbitraryExpressions))
