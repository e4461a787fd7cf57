import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { arbitraryExpressions } from '../../../test/support/arbitrary-nftables.ts'
import type { Expression } from '../types.ts'
import { attr, be32, type Codec, cstring, nest } from '../../netlink/attributes.ts'
import { Writer } from '../../netlink/writer.ts'
import { NFTA_EXPR_DATA, NFTA_EXPR_NAME } from './uapi.ts'
import { expression } from './expressions.ts'

function roundTrip(value: Expression): Expression | undefined {
  return read(expression, value)
}

function read<T>(writeWith: Codec<T>, value: T): Expression | undefined {
  const writer = new Writer()
  writeWith.write(writer, value)
  return expression.read(writer.view, 0, writer.length)
}

/** An expression with the attributes of numbers that the caller chooses. */
function raw(name: string, attributes: Readonly<Record<number, number>>): Expression | undefined {
  const data = nest(Object.fromEntries(Object.keys(attributes).map((type) => [type, attr(Number(type), be32)])))
  const codec = nest({ name: attr(NFTA_EXPR_NAME, cstring), data: attr(NFTA_EXPR_DATA, data) })
  return read(codec, { name, data: attributes })
}

describe('expression', () => {
  it.each(Object.entries(arbitraryExpressions))('%s is read as it was written', (_, values) => {
    fc.assert(
      fc.property(values as fc.Arbitrary<Expression>, (value) => {
        expect(roundTrip(value)).toEqual(value)
      }),
    )
  })

  it('is unknown when the kernel has a name for it that we do not know', () => {
    expect(raw('limit', { 1: 5 })).toMatchObject({ kind: 'unknown', name: 'limit' })
  })

  it.each([
    ['payload that is written', 'payload', { 2: 1, 3: 0, 4: 2, 5: 8 }],
    ['meta with a key that we never use', 'meta', { 1: 8, 2: 99 }],
    ['ct that is set', 'ct', { 2: 3, 4: 1 }],
    ['fib with more than an address', 'fib', { 1: 1, 2: 3, 3: 2 | 8 }],
    ['cmp less than', 'cmp', { 1: 1, 2: 2 }],
    ['bitwise that shifts', 'bitwise', { 1: 1, 2: 1, 3: 4, 6: 1 }],
    ['numgen that increments', 'numgen', { 1: 1, 2: 3, 3: 0, 4: 0 }],
    ['dynset that deletes', 'dynset', { 3: 2, 4: 1 }],
    ['snat', 'nat', { 1: 0, 2: 2, 3: 1 }],
    ['masquerade to ports', 'masq', { 1: 0, 2: 1 }],
    ['redirect to a range of ports', 'redir', { 1: 1, 2: 2 }],
  ])('%s is unknown, not mistaken for ours', (_, name, attributes) => {
    expect(raw(name, attributes)).toMatchObject({ kind: 'unknown', name })
  })

  it('leaves out what the kernel adds by itself: maximums, implied flags', () => {
    const NF_NAT_RANGE_MAP_IPS_AND_PROTO_SPECIFIED = 3
    expect(
      raw('nat', { 1: 1, 2: 2, 3: 1, 4: 1, 5: 9, 6: 9, 7: NF_NAT_RANGE_MAP_IPS_AND_PROTO_SPECIFIED | 0x10 }),
    ).toEqual({ kind: 'nat', type: 'dnat', family: 'ip', addrMin: 0, protoMin: 1, flags: 0x10 })
  })
})
