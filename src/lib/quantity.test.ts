import { expect, test } from 'vitest'
import { parseQuantity } from './quantity.ts'

test.each<[string, number | undefined]>([
  ['0', 0],
  ['512', 512],
  ['1K', 1000],
  ['1k', 1000],
  ['2Ki', 2048],
  ['1.5Mi', 1_572_864],
  ['3M', 3_000_000],
  ['1e3', 1000],
  ['0.1', 1],
  ['-1', -1],
  ['', undefined],
  ['Ki', undefined],
  ['1 K', undefined],
  ['1X', undefined],
  ['1ki', undefined],
])('parseQuantity(%j) is %d', (text, bytes) => {
  expect(parseQuantity(text)).toBe(bytes)
})
