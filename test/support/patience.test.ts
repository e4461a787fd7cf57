import { expect, test } from 'vitest'
import { patience, patienceFor } from './patience.ts'

test.for([
  ['idle', '0.20 0.10 0.05 1/512 1234', 1],
  ['busy for a minute', '8.00 1.29 0.55 1/512 1234', 4],
  ['busy at this moment', '0.50 1.29 0.55 6/512 1234', 3],
  ['beyond all measure', '90.00 80.00 70.00 99/512 1234', 10],
] as const)('patienceFor() a machine of two processors that is %s', ([, loadavg, expected]) => {
  expect(patienceFor(loadavg, 2)).toBe(expected)
})

test('patience() is that of this machine', () => {
  expect(patience()).toBeGreaterThanOrEqual(1)
})
