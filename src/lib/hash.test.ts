import { createHash } from 'node:crypto'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { base32Sha256, HASHED_NAME_MAX, hashedName, sha256Word } from './hash.ts'

describe('base32Sha256()', () => {
  // Vectors seen in kube-proxy's own rules.
  it.each([
    ['ns1/svc1:p80tcp', 16, 'XPGD46QRK7WJZT7O'],
    ['default/kubernetes:httpstcp', 16, 'NPX46M4PTMTKRN6Y'],
    ['ns1/svc1/tcp/p80', 8, 'ULMVA6XW'],
  ])('of %s is what kube-proxy makes of it', (text, length, expected) => {
    expect(base32Sha256(text, length)).toBe(expected)
  })

  it('spells out the digest', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.integer({ min: 1, max: 48 }), (text, length) => {
        const digest = createHash('sha256').update(text).digest()
        const bits = [...digest].map((byte) => byte.toString(2).padStart(8, '0')).join('')
        const letters = bits.match(/.{5}/g)!.map((five) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'[parseInt(five, 2)])
        expect(base32Sha256(text, length)).toBe(letters.slice(0, length).join(''))
        expect(sha256Word(text)).toBe(digest.readUInt32BE())
      }),
    )
  })
})

describe('hashedName()', () => {
  it('puts the hash before the name', () => {
    expect(hashedName('ns1/svc1/tcp/p80')).toBe('ULMVA6XW-ns1/svc1/tcp/p80')
  })
  it('replaces what nft does not allow in a name', () => {
    expect(hashedName('a b"}\n;é')).toMatch(/^[A-Z2-7]{8}-a_b_____$/)
  })
  it('cuts what is too long', () => {
    const name = hashedName('x'.repeat(400))
    expect(name).toHaveLength(HASHED_NAME_MAX)
    expect(name.endsWith('...')).toBe(true)
  })
})
