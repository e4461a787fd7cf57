import { expect, test } from 'vitest'
import { Longest } from './longest.ts'

test('the largest value is known for five to ten minutes', () => {
  let minutes = 0
  const longest = new Longest(() => minutes * 60_000)
  longest.add(3)
  longest.add(2)
  const values: number[] = []
  for (minutes = 1; minutes <= 11; minutes++) {
    if (minutes === 6) longest.add(1)
    values.push(longest.value)
  }
  expect(values).toEqual([3, 3, 3, 3, 3, 3, 3, 3, 3, 1, 1])
  minutes = 60
  expect(longest.value).toBe(0)
})
