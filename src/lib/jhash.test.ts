import { expect, test } from 'vitest'
import { jhash, scaleHash } from './jhash.ts'

// What the kernel's own code gives, compiled for a machine of this byte order.
test.each<[string, number, number]>([
  ['', 0, 0xdeadbeef],
  ['a', 0x6b756265, 0xdbc8c50a],
  ['abcd', 0x6b756265, 0x790ace3e],
  ['10.1.0.7 4444', 0x6b756265, 0xafdd490d],
  ['0123456789abcdefghij', 0x6b756265, 0xa04bbd0b],
  ['0123456789abcdefghijklmnopqrstuvwxyz', 0x6b756265, 0x9500ae95],
])('jhash(%j, %d)', (key, seed, hash) => {
  expect(jhash(key, seed)).toBe(hash)
})

test('scaleHash() stays below the modulus', () => {
  expect([0, 2 ** 31, 2 ** 32 - 1].map((hash) => scaleHash(hash, 8191))).toEqual([0, 4095, 8190])
})
