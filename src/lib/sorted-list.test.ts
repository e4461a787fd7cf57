import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { withElement, withoutElement } from './sorted-list.ts'

const byNumber = (a: number, b: number) => a - b

test('withElement() and withoutElement() keep a list of different elements in order, whatever its length', () => {
  const change = fc.record({ adds: fc.boolean(), value: fc.integer({ min: 0, max: 60 }) })
  fc.assert(
    fc.property(fc.array(change, { maxLength: 200 }), (changes) => {
      let list: readonly number[] = []
      const wanted = new Set<number>()
      for (const { adds, value } of changes) {
        list = (adds ? withElement : withoutElement)(list, value, byNumber)
        if (adds) wanted.add(value)
        else wanted.delete(value)
        expect(list).toEqual([...wanted].sort(byNumber))
      }
    }),
  )
})
