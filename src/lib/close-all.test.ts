import { expect, test } from 'vitest'
import { closeAll, closeAllNow } from './close-all.ts'

test('takes each step when the one before has come to its end', async () => {
  const taken: string[] = []
  await closeAll(
    async () => {
      await new Promise((resolve) => setTimeout(resolve, 5))
      taken.push('withdrawn')
    },
    () => taken.push('closed'),
  )
  expect(taken).toEqual(['withdrawn', 'closed'])
})

test('takes all steps although some fail, and throws the first error', async () => {
  const taken: string[] = []
  const closing = closeAll(
    () => taken.push('a'),
    () => {
      throw new Error('b failed')
    },
    () => taken.push('c'),
    () => Promise.reject(new Error('d failed')),
    () => taken.push('e'),
  )
  await expect(closing).rejects.toThrow('b failed')
  expect(taken).toEqual(['a', 'c', 'e'])
})

test('takes all steps at once although some fail', () => {
  const taken: string[] = []
  const failing = (name: string) => () => {
    throw new Error(`${name} failed`)
  }
  const close = () =>
    closeAllNow(
      () => taken.push('a'),
      failing('b'),
      failing('c'),
      () => taken.push('d'),
    )
  expect(close).toThrow('b failed')
  expect(taken).toEqual(['a', 'd'])
})
