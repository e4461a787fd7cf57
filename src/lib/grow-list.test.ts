import { expect, test } from 'vitest'
import { growList } from './grow-list.ts'

test('growList() adds elements, and leaves the empty list empty', () => {
  const none: readonly number[] = []
  let list = none
  for (const element of [3, 1, 2]) list = growList(list, element)
  expect(list).toEqual([3, 1, 2])
  expect(none).toEqual([])
})
