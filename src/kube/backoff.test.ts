import { expect, test } from 'vitest'
import { Backoff } from './backoff.ts'

test('Backoff.next() doubles up to the limit', () => {
  const backoff = new Backoff({ initialMs: 100, maxMs: 500, random: () => 0.5 })
  expect([1, 2, 3, 4, 5].map(() => backoff.next())).toEqual([100, 200, 400, 500, 500])
})

test('Backoff.next() is spread between half and one and a half', () => {
  let chance = 0
  const backoff = new Backoff({ initialMs: 100, maxMs: 100, random: () => chance })
  expect(backoff.next()).toBe(50)
  chance = 0.999
  expect(backoff.next()).toBeCloseTo(149.9)
})

test('Backoff.next() waits at least as long as the server asks for', () => {
  const backoff = new Backoff({ initialMs: 100, maxMs: 500, random: () => 0 })
  expect(backoff.next(3000)).toBeGreaterThanOrEqual(3000)
})

test('Backoff.reset() starts over', () => {
  const backoff = new Backoff({ initialMs: 100, maxMs: 500, random: () => 0.5 })
  backoff.next()
  backoff.next()
  backoff.reset()
  expect(backoff.next()).toBe(100)
})

test('Backoff.next() waits minutes for a server that asks for a year', () => {
  const backoff = new Backoff({ initialMs: 100, maxMs: 1000, random: () => 0.999 })
  expect(backoff.next(365 * 24 * 3600 * 1000)).toBeLessThan(10 * 60_000)
  expect(backoff.next(60_000)).toBeGreaterThanOrEqual(60_000)
})
