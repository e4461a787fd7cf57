import { expect, it } from 'vitest'
import { formatBytes, formatMs, formatPerSecond } from './rates.ts'

it('figures are short', () => {
  expect([0, 0.44, 3.26, 12.4, 12_345].map(formatPerSecond)).toEqual(['', '0.4/s', '3.3/s', '12/s', '12k/s'])
  expect([12, 1234, 5_600_000].map(formatBytes)).toEqual(['12 B', '1.2 kB', '5.6 MB'])
  expect([0.84, 12.3, 3456].map(formatMs)).toEqual(['0.8 ms', '12 ms', '3.5 s'])
})
