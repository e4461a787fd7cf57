import { asBytes } from '../lib/ip.ts'
import * as fc from 'fast-check'
import { describe, expect, expectTypeOf, it } from 'vitest'
import {
  attr,
  be16,
  be32,
  be64,
  be64number,
  bytes,
  type Codec,
  constant,
  cstring,
  forbidden,
  type Infer,
  list,
  named,
  ne32,
  nest,
  opt,
  decodeBytes,
  sbe32,
  u8,
} from './attributes.ts'
import { Writer } from './writer.ts'
import { runs } from '../../test/support/runs.ts'

function encode<T>(codec: Codec<T>, value: T): DataView {
  const writer = new Writer()
  codec.write(writer, value)
  const written = writer.written().slice()
  return new DataView(written.buffer)
}

function decode<T>(codec: Codec<T>, view: DataView): T | undefined {
  return codec.read(view, 0, view.byteLength)
}

const byteText = fc.string({ unit: fc.integer({ min: 0, max: 255 }).map((n) => String.fromCharCode(n)), maxLength: 40 })

describe('codecs', () => {
  const codecs: readonly (readonly [string, Codec<never>, fc.Arbitrary<unknown>])[] = [
    ['u8', u8, fc.nat(0xff)],
    ['be16', be16, fc.nat(0xffff)],
    ['be32', be32, fc.integer({ min: 0, max: 0xffffffff })],
    ['sbe32', sbe32, fc.integer()],
    ['be64', be64, fc.bigInt({ min: 0n, max: 0xffffffffffffffffn })],
    ['be64number', be64number, fc.maxSafeNat()],
    ['ne32', ne32, fc.integer({ min: 0, max: 0xffffffff })],
    ['bytes', bytes, byteText],
    ['cstring', cstring, fc.string({ unit: 'grapheme-ascii' })],
    ['list', list(1, bytes), fc.array(byteText)],
  ] as unknown as (readonly [string, Codec<never>, fc.Arbitrary<never>])[]

  it.each(codecs)('%s reads what it wrote', (_, codec, values) => {
    fc.assert(
      fc.property(values, (value) => {
        expect(decode(codec, encode(codec, value as never))).toEqual(value)
      }),
    )
  })

  it.each([
    ['u8', u8],
    ['be16', be16],
    ['be32', be32],
    ['be64', be64],
    ['ne32', ne32],
  ] as const)('%s gives undefined where there is nothing to read', (_, codec) => {
    expect(codec.read(new DataView(new ArrayBuffer(0)), 0, 0)).toBeUndefined()
  })

  it('named() gives undefined for a number without a name', () => {
    const colour = named(be32, { red: 1, green: 2 })
    expect(decode(colour, encode(colour, 'green'))).toBe('green')
    expect(decode(colour, encode(be32, 3))).toBeUndefined()
  })

  it('constant() gives undefined for any other value', () => {
    expect(decode(constant(be32, 4), encode(be32, 4))).toBe(4)
    expect(decode(constant(be32, 4), encode(be32, 5))).toBeUndefined()
  })

  it('cstring reads text that lacks its NUL', () => {
    expect(decode(cstring, encode(bytes, asBytes('meta')))).toBe('meta')
  })
})

describe('decodeBytes()', () => {
  it('reads any range of a view that does not start where its memory starts', () => {
    fc.assert(
      fc.property(byteText, byteText, byteText, (before, text, after) => {
        const memory = Uint8Array.from(`xy${before}${text}${after}`, (c) => c.charCodeAt(0))
        const view = new DataView(memory.buffer, 2)
        expect(decodeBytes(view, before.length, before.length + text.length)).toBe(text)
      }),
    )
  })
})

describe('nest()', () => {
  const lookup = nest({ set: attr(1, cstring), sreg: attr(2, be32), dreg: opt(3, be32) })

  it('infers its type from the table', () => {
    expectTypeOf<Infer<typeof lookup>>().toEqualTypeOf<{
      readonly set: string
      readonly sreg: number
      readonly dreg?: number
    }>()
  })

  it('reads what it wrote, absent attributes included', () => {
    const value = fc.oneof(
      fc.record({ set: fc.constant('services'), sreg: fc.nat(9) }),
      fc.record({ set: fc.constant('s'), sreg: fc.nat(9), dreg: fc.nat(9) }),
    )
    fc.assert(
      fc.property(value, (lookupValue) => {
        expect(decode(lookup, encode(lookup, lookupValue))).toEqual(lookupValue)
      }),
    )
  })

  it('skips attributes that it does not name, and the flags in their types', () => {
    const wider = nest({ flags: attr(0x4000 | 9, be32), set: attr(0x8000 | 1, cstring), sreg: attr(2, be32) })
    expect(decode(lookup, encode(wider, { flags: 1, set: 's', sreg: 4 }))).toEqual({ set: 's', sreg: 4 })
  })

  it('gives undefined when a required attribute is missing', () => {
    const narrower = nest({ set: attr(1, cstring) })
    expect(decode(lookup, encode(narrower, { set: 's' }))).toBeUndefined()
  })

  it('gives undefined when an attribute cannot be told, or must not be there', () => {
    const wire = encode(nest({ code: attr(1, be32) }), { code: 77 })
    expect(decode(nest({ code: attr(1, named(be32, { drop: 0 })) }), wire)).toBeUndefined()
    expect(decode(nest({ code: forbidden(1) }), wire)).toBeUndefined()
  })

  it('gives undefined, and never throws, for bytes that are no attributes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (noise) => {
        const view = new DataView(noise.slice().buffer)
        const read = decode(nest({ a: attr(1, list(1, lookup)), b: opt(2, be64) }), view)
        expect(read === undefined || Array.isArray(read.a)).toBe(true)
      }),
      runs(2000),
    )
  })
})
