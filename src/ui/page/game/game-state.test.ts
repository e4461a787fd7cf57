import { expect, test } from 'vitest'
import { addWrong, begin, solve, takeHint, totalOf } from './game-state.ts'

test('a hint and wrong answers cost points, and only what is solved counts', () => {
  const first = { ...begin(), at: 0 }
  expect(totalOf(takeHint(first))).toBe(0)
  expect(totalOf(solve(first))).toBe(100)
  expect(totalOf(solve(addWrong(takeHint(first))))).toBe(50)
  const many = [1, 2, 3, 4, 5, 6].reduce(addWrong, first)
  expect(totalOf(solve(many))).toBe(0)
  expect(totalOf(solve({ ...solve(first), at: 1 }))).toBe(200)
})
