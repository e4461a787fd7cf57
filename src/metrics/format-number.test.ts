import { expect, test } from 'vitest'
import { formatNumber } from './format-number.ts'

test.each([
  [0, '0'],
  [-0.5, '-0.5'],
  [842709, '842709'],
  [1310720, '1.31072e+06'],
  [1794717678.9995358, '1.7947176789995358e+09'],
  [0.0001, '0.0001'],
  [0.000012, '1.2e-05'],
  [1e100, '1e+100'],
  [Infinity, '+Inf'],
  [-Infinity, '-Inf'],
  [NaN, 'NaN'],
])('formatNumber(%d) prints what Go prints: %s', (value, text) => {
  expect(formatNumber(value)).toBe(text)
})
