import { expect, test } from 'vitest'
import { HEIGHT, planChart, roundUp, spanOf } from './plan-chart.ts'

test('the newest second is at the right, and a second without a value is a gap', () => {
  const { top, curves } = planChart([{ name: 'all', values: [1, 2, null, 2] }], 1, 300)
  expect(top).toBe(2)
  expect(curves[0]!.path).toBe('M297 29L298 2M300 2')
  expect(curves[0]!.area).toBe(`M297 29L298 2L298 ${HEIGHT}L297 ${HEIGHT}ZM300 2L300 ${HEIGHT}L300 ${HEIGHT}Z`)
})

test('the page shows what it has, five minutes at most', () => {
  expect([1, 60, 61, 200, 300, 400].map(spanOf)).toEqual([60, 60, 120, 300, 300, 300])
})

test('the scale ends at a round number', () => {
  expect([0.3, 1, 3, 7, 12, 40, 99, 230].map(roundUp)).toEqual([0.5, 1, 5, 10, 20, 50, 100, 500])
})
