import { expect, it } from 'vitest'
import { KeptText } from './kept-text.ts'

it('KeptText makes each piece once, when it is first read, however often it is read', () => {
  const made: string[] = []
  const text = new KeptText(
    (function* () {
      for (const piece of ['a', 'b', 'c']) {
        made.push(piece)
        yield piece
      }
    })(),
  )
  const [first, second] = text
  expect([first, second]).toEqual(['a', 'b'])
  expect(made).toEqual(['a', 'b'])
  expect(text.soFar).toBe('ab')
  expect([...text].join('')).toBe('abc')
  expect([...text].join('')).toBe('abc')
  expect(made).toEqual(['a', 'b', 'c'])
})
