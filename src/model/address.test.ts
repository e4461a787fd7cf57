import { expect, test } from 'vitest'
import { parseAddress } from './address.ts'

test.each([
  ['10.0.0.1', '10.0.0.1'],
  ['0.0.0.0', '0.0.0.0'],
  ['100.20.3.0', '100.20.3.0'],
  ['010.0.0.1', '10.0.0.1'],
  ['10.0.0.01', '10.0.0.1'],
  ['10.00.0.1', '10.0.0.1'],
  ['::ffff:10.0.0.1', '10.0.0.1'],
  ['fd00::1', 'fd00::1'],
  ['FD00:0::1', 'fd00::1'],
])('parseAddress() spells %s as %s', (text, canonical) => {
  expect(parseAddress(text)?.text).toBe(canonical)
})

test('parseAddress() refuses what is no address', () => {
  expect(parseAddress('10.0.0')).toBeUndefined()
})
