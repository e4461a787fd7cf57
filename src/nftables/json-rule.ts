// A rule of nft's JSON, as the expressions that nft would make of it.

import { host32 } from '../lib/endian.ts'
import { type Bytes, prefixMask, asBytes } from '../lib/ip.ts'
import { flagsOf, type Json, type JsonOperand, listOf, operandsOf, rangeOf, recordOf, valueOf } from './json-operand.ts'
import { anonymousSet, type SetsBeingRead } from './json-set.ts'
import { loadHash } from './language.ts'
import type { Expression, NftFamily, Rule } from './types.ts'

const ZERO: Bytes = asBytes('\0\0\0\0')

/** What is none of a proxy becomes an expression that no packet can be walked through. */
export function ruleFromJson(json: Json, family: NftFamily, sets: SetsBeingRead): Rule {
  const { expr, comment, handle } = recordOf(json)
  const expressions = listOf(expr).flatMap((statement) => statementOf(recordOf(statement), family, sets))
  return {
    text: '',
    comment: typeof comment === 'string' ? comment : undefined,
    expressions,
    ...(typeof handle === 'number' ? { handle: BigInt(handle) } : {}),
  }
}

function statementOf(
  statement: Readonly<Record<string, Json>>,
  family: NftFamily,
  sets: SetsBeingRead,
): readonly Expression[] {
  const [kind = ''] = Object.keys(statement)
  const body = recordOf(statement[kind])
  const unknown: Expression[] = [{ kind: 'unknown', name: kind, attributes: asBytes('') }]
  switch (kind) {
    case 'match':
      return matchOf(body, family, sets) ?? unknown
    case 'vmap': {
      const operands = operandsOf(body['key'], family)
      const set = operands && sets.named(body['data'], operands, 'verdict')
      return operands === undefined || set === undefined
        ? unknown
        : [...loadAll(operands), { kind: 'lookup', set, sreg: 0, dreg: 'verdict' }]
    }
    case 'jump':
    case 'goto':
      return [{ kind: 'verdict', code: kind, chain: String(body['target']) }]
    case 'accept':
    case 'drop':
    case 'return':
      return [{ kind: 'verdict', code: kind }]
    case 'mangle':
      return mangleOf(body) ?? unknown
    case 'masquerade':
      return [{ kind: 'masq', flags: body['flags'] === undefined ? 0 : 1 << 4 }]
    case 'reject':
      return [{ kind: 'reject', type: 0, code: 3 }]
    case 'limit':
    case 'ct count': {
      const limit = limitOf(kind, body)
      return limit === undefined ? unknown : [limit]
    }
    case 'counter':
      return [
        { kind: 'counter', packets: BigInt(Number(body['packets'] ?? 0)), bytes: BigInt(Number(body['bytes'] ?? 0)) },
      ]
    case 'dnat':
      return dnatOf(body, family, sets) ?? unknown
    case 'set':
    case 'map':
      return updateOf(kind, body, family) ?? unknown
    default:
      return unknown
  }
}

function matchOf(
  { op, left, right }: Readonly<Record<string, Json>>,
  family: NftFamily,
  sets: SetsBeingRead,
): Expression[] | undefined {
  // Of flags, `!` says that none of them is set.
  const not = op === '!=' || op === '!'
  const masked = recordOf(left)['&']
  if (Array.isArray(masked)) {
    const [operand] = operandsOf(masked[0], family) ?? []
    const mask = Number(masked[1])
    if (operand === undefined) return undefined
    const value = host32(Number(right))
    return [operand.load(0), bits(mask), { kind: 'cmp', op: not ? 'neq' : 'eq', sreg: 0, value }]
  }
  const operands = operandsOf(left, family)
  const [first] = operands ?? []
  if (operands === undefined || first === undefined) return undefined
  if (first.type === 'ct_state' || first.type === 'ct_status') {
    return [first.load(0), bits(flagsOf(right)), { kind: 'cmp', op: not ? 'eq' : 'neq', sreg: 0, value: ZERO }]
  }
  const inSet = typeof right === 'string' && right.startsWith('@') ? right : recordOf(right)['set']
  if (inSet !== undefined) {
    const set = sets.named(typeof inSet === 'string' ? inSet : right, operands, undefined)
    if (set === undefined) return undefined
    return [...loadAll(operands), { kind: 'lookup', set, sreg: 0, ...(not ? { invert: true } : {}) }]
  }
  return compareTo(first, right, { not, sets })
}

function compareTo(
  operand: JsonOperand,
  right: Json,
  { not, sets }: { readonly not: boolean; readonly sets: SetsBeingRead },
): Expression[] | undefined {
  const { prefix, range } = recordOf(right)
  const op = not ? 'neq' : 'eq'
  if (prefix !== undefined) {
    const [from] = rangeOf(operand.type, right) ?? []
    if (from === undefined) return undefined
    const mask = prefixMask(Number(recordOf(prefix)['len']), from.length)
    return [
      operand.load(0),
      { kind: 'bitwise', sreg: 0, dreg: 0, length: from.length, mask, xor: asBytes('\0'.repeat(from.length)) },
      { kind: 'cmp', op, sreg: 0, value: from },
    ]
  }
  if (range !== undefined) {
    const set = anonymousSet(sets, [right], [operand])
    if (set === undefined) return undefined
    return [operand.load(0), { kind: 'lookup', set, sreg: 0, ...(not ? { invert: true } : {}) }]
  }
  const value = valueOf(operand.type, right)
  return value === undefined ? undefined : [operand.load(0), { kind: 'cmp', op, sreg: 0, value }]
}

/** `meta mark set meta mark | 0x4000` and its like. */
function mangleOf({ key, value }: Readonly<Record<string, Json>>): Expression[] | undefined {
  if (recordOf(recordOf(key)['meta'])['key'] !== 'mark') return undefined
  const [operator = ''] = Object.keys(recordOf(value))
  const operand = listOf(recordOf(value)[operator])[1]
  if (typeof operand !== 'number') return undefined
  const change = {
    '|': { mask: ~operand >>> 0, xor: operand },
    '^': { mask: 0xffffffff, xor: operand },
    '&': { mask: operand, xor: 0 },
  }[operator]
  if (change === undefined) return undefined
  return [
    { kind: 'meta', key: 'mark', dreg: 0 },
    { kind: 'bitwise', sreg: 0, dreg: 0, length: 4, mask: host32(change.mask), xor: host32(change.xor) },
    { kind: 'metaSet', key: 'mark', sreg: 0 },
  ]
}

/** To a constant, or to what a map has. */
function dnatOf(
  { addr, port }: Readonly<Record<string, Json>>,
  family: NftFamily,
  sets: SetsBeingRead,
): Expression[] | undefined {
  const words = family === 'ip' ? 1 : 4
  const type = family === 'ip' ? 'ipv4_addr' : 'ipv6_addr'
  const nat = (protoMin: number | undefined): Expression => ({
    kind: 'nat',
    type: 'dnat',
    family,
    addrMin: 0,
    ...(protoMin === undefined ? {} : { protoMin }),
    flags: 0,
  })
  const map = recordOf(recordOf(addr)['map'])
  if (map['key'] !== undefined) {
    const operands = operandsOf(map['key'], family)
    const set = operands && sets.named(map['data'], operands, [type, 'inet_service'])
    return set === undefined || operands === undefined
      ? undefined
      : [...loadAll(operands), { kind: 'lookup', set, sreg: 0, dreg: 0 }, nat(words)]
  }
  const address = valueOf(type, addr)
  const number = port === undefined ? undefined : valueOf('inet_service', port)
  if (address === undefined) return undefined
  return [
    { kind: 'immediate', dreg: 0, value: address },
    ...(number === undefined ? [] : [{ kind: 'immediate', dreg: words, value: number } as const]),
    nat(number === undefined ? undefined : words),
  ]
}

/** `limit rate over 10/second`, `ct count over 10`: what says that packets are too many. */
function limitOf(kind: 'limit' | 'ct count', json: Json): Limit | undefined {
  const { rate, per, burst, val, inv } = recordOf(json)
  const over = inv === true
  if (kind === 'ct count') return typeof val === 'number' ? { kind: 'connlimit', most: val, over } : undefined
  if (typeof rate !== 'number' || per !== 'second') return undefined
  return { kind: 'limit', perSecond: rate, burst: typeof burst === 'number' ? burst : 5, over }
}

type Limit = Extract<Expression, { kind: 'limit' | 'connlimit' }>

/** What packets add to sets. */
function updateOf(
  kind: 'set' | 'map',
  body: Readonly<Record<string, Json>>,
  family: NftFamily,
): Expression[] | undefined {
  const written = body[kind]
  const name = typeof written === 'string' ? written.replace(/^@/, '') : ''
  const inner = recordOf(recordOf(body['elem'])['elem'])
  const key = inner['val'] ?? body['elem']
  const operands = operandsOf(key, family)
  if (operands === undefined || name === '') return undefined
  const timeout = inner['timeout']
  const statements = listOf(body['stmt']).map(recordOf)
  const limits = statements.map((each) => limitOf('limit', each['limit']) ?? limitOf('ct count', each['ct count']))
  // Another one may say which packets match, too.
  if (limits.includes(undefined) && !statements.every((each) => each['counter'] !== undefined)) return undefined
  const data = body['data'] === undefined ? undefined : operandsOf(body['data'], family)
  const dataReg = 4 * Math.ceil(operands.reduce((sum, { words }) => sum + words, 0) / 4)
  return [
    ...loadAll(operands),
    ...(data === undefined ? [] : loadAll(data, dataReg)),
    {
      kind: 'dynset',
      op: body['op'] === 'add' ? 'add' : 'update',
      set: name,
      keyReg: 0,
      ...(data === undefined ? {} : { dataReg }),
      ...(typeof timeout === 'number' ? { timeoutMs: timeout * 1000 } : {}),
      ...(limits[0] === undefined ? {} : { limits: limits[0] }),
    },
  ]
}

function bits(mask: number): Expression {
  return { kind: 'bitwise', sreg: 0, dreg: 0, length: 4, mask: host32(mask), xor: ZERO }
}

function loadAll(operands: readonly JsonOperand[], first = 0): Expression[] {
  let dreg = first
  return operands.flatMap(({ load, words, mask, hash }): Expression[] => {
    const at = dreg
    dreg += words
    if (hash !== undefined) return loadHash(hash, at, first + operands.reduce((sum, each) => sum + each.words, 0))
    if (mask === undefined) return [load(at)]
    const { length } = mask
    return [load(at), { kind: 'bitwise', sreg: at, dreg: at, length, mask, xor: asBytes('\0'.repeat(length)) }]
  })
}
