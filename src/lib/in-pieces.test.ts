import { expect, test } from 'vitest'
import { inPieces } from './in-pieces.ts'

test('other work gets a turn after so many', async () => {
  const done: number[] = []
  const seen: number[] = []
  const look = () => {
    seen.push(done.length)
    if (done.length < 10) setImmediate(look)
  }
  setImmediate(look)
  await inPieces(Array.from({ length: 10 }).keys(), 4, (one) => done.push(one))
  expect(done).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  // After the first piece, and after the second.
  expect(seen).toEqual(expect.arrayContaining([4, 8]))
})

test('what is done throws where it is waited for', async () => {
  const working = inPieces([1], 1, () => {
    throw new Error('no')
  })
  await expect(working).rejects.toThrow('no')
})
