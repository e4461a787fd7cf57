import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { StringPool } from './string-pool.ts'

function fromText(pool: StringPool, text: string): string {
  const bytes = Buffer.from(`<${text}>`)
  return pool.fromBytes(bytes, 1, bytes.length - 1)
}

test('StringPool.fromBytes() returns the text, however full the table is', () => {
  const pool = new StringPool(8)
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 100 }), (text) => {
      expect(fromText(pool, text)).toBe(Buffer.from(text).toString('utf8'))
      expect(pool.fromString(text)).toBe(text)
    }),
  )
})

test('StringPool.listOf() returns the same list for the same element', () => {
  const pool = new StringPool()
  expect(pool.listOf('zone-a')).toBe(pool.listOf(fromText(pool, 'zone-a')))
  expect(pool.listOf('zone-b')).toEqual(['zone-b'])
})
