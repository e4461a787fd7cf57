import { createHash } from 'node:crypto'
import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { base32Sha256 } from './hash.ts'
import { sha256Words } from './sha256.ts'

function hex(text: string): string {
  return Array.from(sha256Words(text), (word) => (word >>> 0).toString(16).padStart(8, '0')).join('')
}

it('sha256Words() of any text is what node:crypto says', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 300 }), (text) => {
      expect(hex(text)).toBe(createHash('sha256').update(text).digest('hex'))
    }),
  )
})

it.each([0, 55, 56, 63, 64, 119, 120, 1000])(
  'sha256Words() of %d letters is right at the edges of blocks',
  (length) => {
    const text = 'a'.repeat(length)
    expect(hex(text)).toBe(createHash('sha256').update(text).digest('hex'))
  },
)

it('base32Sha256() spells out all of the digest', () => {
  fc.assert(
    fc.property(fc.string(), fc.integer({ min: 1, max: 51 }), (text, length) => {
      const bits = [...createHash('sha256').update(text).digest()]
        .map((byte) => byte.toString(2).padStart(8, '0'))
        .join('')
      const letters = bits.match(/.{5}/g)!.map((five) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'[parseInt(five, 2)])
      expect(base32Sha256(text, length)).toBe(letters.slice(0, length).join(''))
    }),
  )
})
