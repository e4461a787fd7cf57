import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Endpoint } from './endpoints.ts'
import { siftEjected } from './ejections.ts'

const anEndpoint = (n: number) => ({ ip: `10.1.0.${n}`, port: 8080 }) as Endpoint
const four = [1, 2, 3, 4].map(anEndpoint)
const key = (n: number) => `10.1.0.${n}:8080`

describe('siftEjected()', () => {
  test('takes out what does not answer', () => {
    expect(siftEjected(four, new Set([key(2)]))).toEqual({
      kept: [four[0], four[2], four[3]],
      ejected: [four[1]],
    })
  })

  test('takes out no more than half, those first that were found out first', () => {
    expect(siftEjected(four, new Set([key(4), key(1), key(2)])).ejected).toEqual([four[0], four[3]])
    expect(siftEjected(four.slice(0, 3), new Set([key(3), key(1), key(2)])).ejected).toEqual([four[2]])
    expect(siftEjected(four.slice(0, 1), new Set([key(1)])).kept).toEqual([four[0]])
  })

  test('the same list when nothing is taken out', () => {
    expect(siftEjected(four, new Set()).kept).toBe(four)
    expect(siftEjected(four, new Set([key(9)])).kept).toBe(four)
  })

  test('always keeps half at least, in order, and loses none', () => {
    fc.assert(
      fc.property(fc.nat(20), fc.uniqueArray(fc.integer({ min: 1, max: 30 })), (length, dead) => {
        const list = Array.from({ length }, (_, i) => anEndpoint(i + 1))
        const { kept, ejected } = siftEjected(list, new Set(dead.map(key)))
        expect(kept.length).toBeGreaterThanOrEqual(Math.ceil(length / 2))
        expect(list.filter((each) => kept.includes(each) !== ejected.includes(each))).toEqual(list)
      }),
    )
  })
})
