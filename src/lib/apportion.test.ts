import fc from 'fast-check'
import { expect, test } from 'vitest'
import { apportion, mostPlaces } from './apportion.ts'

test.each([
  [
    [1, 1, 1],
    [1, 1, 1],
  ],
  [
    [2, 4, 6],
    [1, 2, 3],
  ],
  [
    [1, 0, 3],
    [1, 0, 3],
  ],
  [
    [0, 0],
    [0, 0],
  ],
  [[], []],
  [
    [1000, 1000],
    [1, 1],
  ],
  [
    [65535, 1],
    [256, 0],
  ],
  [
    [301, 200],
    [154, 102],
  ],
])('apportion(%j) is %j', (weights, places) => {
  expect(apportion(weights)).toEqual(places)
})

test('each share is exact to one place, and what has no weight has none', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(65535), { minLength: 1, maxLength: 300 }), (weights) => {
      fc.pre(weights.some((weight) => weight > 0))
      const places = apportion(weights)
      const all = places.reduce((sum, count) => sum + count, 0)
      const total = weights.reduce((sum, weight) => sum + weight, 0)
      expect(all).toBeLessThanOrEqual(mostPlaces(weights.length))
      for (const [i, weight] of weights.entries()) {
        expect(Math.abs(places[i]! / all - weight / total)).toBeLessThanOrEqual(1 / 256)
        if (weight === 0) expect(places[i]).toBe(0)
      }
    }),
  )
})

test('where the weights themselves fit, one that changes leaves the places of all others', () => {
  const before = apportion([3, 5, 7, 1])
  expect(apportion([3, 5, 9, 1])).toEqual([...before.slice(0, 2), 9, 1])
})
