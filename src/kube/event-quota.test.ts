import { expect, test } from 'vitest'
import { EventQuota } from './event-quota.ts'

const MINUTE = 60_000

test('25 Events of an object at once, and then one in five minutes', () => {
  const quota = new EventQuota()
  const take = (count: number, nowMs: number, object = 'ns/web') =>
    Array.from({ length: count }, () => quota.take(object, nowMs)).filter(Boolean).length
  expect(take(100, 0)).toBe(25)
  expect(take(100, 0, 'ns/other')).toBe(25)
  expect(take(100, 4 * MINUTE)).toBe(0)
  expect(take(100, 5 * MINUTE)).toBe(1)
  expect(take(100, 20 * MINUTE)).toBe(3)
  expect(take(100, 24 * 60 * MINUTE)).toBe(25)
})
