import { expect, test } from 'vitest'
import { turnsOf } from './turns.ts'

test.each([
  [[1, 1, 1], 'abc'],
  [[5, 5], 'ab'],
  [[3, 1], 'aaba'],
  [[4, 2], 'aba'],
  [[], ''],
])('turnsOf() spreads the turns of weights %j: %s', (weights, turns) => {
  expect(
    turnsOf(weights)
      .map((index) => 'abc'[index])
      .join(''),
  ).toBe(turns)
})

test('turnsOf() gives long lists with odd weights shares that are exact to 1 in 256', () => {
  const weights = [65535, 1000, 333, 7]
  const turns = turnsOf(weights)
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  for (const [index, weight] of weights.entries()) {
    const share = turns.filter((each) => each === index).length / turns.length
    expect(Math.abs(share - weight / total)).toBeLessThanOrEqual(1 / 256)
  }
})
