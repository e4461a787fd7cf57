import { expect, test } from 'vitest'
import { formatJsonTime, formatUnixDate } from './go-time.ts'

test.each([
  [Date.UTC(2026, 10, 15, 4, 41, 22, 887), '2026-11-15T04:41:22.887Z'],
  [Date.UTC(2026, 10, 15, 4, 41, 22, 880), '2026-11-15T04:41:22.88Z'],
  [Date.UTC(2026, 10, 15, 4, 41, 20, 0), '2026-11-15T04:41:20Z'],
  [Date.UTC(2026, 10, 10, 0, 0, 0, 0), '2026-11-10T00:00:00Z'],
  [undefined, '0001-01-01T00:00:00Z'],
])('formatJsonTime(%s) is %s', (ms, text) => {
  expect(formatJsonTime(ms)).toBe(text)
})

test.each([
  [Date.UTC(2026, 10, 15, 4, 41, 18), 'Sun Nov 15 04:41:18 UTC 2026'],
  [Date.UTC(2026, 0, 5, 14, 1, 8), 'Mon Jan  5 14:01:08 UTC 2026'],
])('formatUnixDate(%s) is %s', (ms, text) => {
  expect(formatUnixDate(ms)).toBe(text)
})
