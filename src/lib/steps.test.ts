import { expect, test } from 'vitest'
import { atOnce, inTurns, type Steps } from './steps.ts'

function* count(steps: number, done: number[]): Steps<string> {
  for (let i = 0; i < steps; i++) {
    done.push(i)
    yield
  }
  return 'counted'
}

test('at once: all steps, and the result', () => {
  const done: number[] = []
  expect(atOnce(count(3, done))).toBe('counted')
  expect(done).toEqual([0, 1, 2])
})

test('in turns: other work comes in after each step', async () => {
  const done: number[] = []
  const result = inTurns(count(3, done))
  expect(done).toEqual([0])
  const seen: number[] = []
  const look = () => {
    seen.push(done.length)
    if (done.length < 3) setImmediate(look)
  }
  setImmediate(look)
  expect(await result).toBe('counted')
  expect(seen).toEqual([2, 3])
})

test('what has no steps is done when it returns', () => {
  expect(inTurns(count(0, []))).toBe('counted')
})

test('an error comes as it would: thrown by what is done at once, and from the promise afterwards', async () => {
  function* failing(steps: number): Steps<never> {
    for (let i = 0; i < steps; i++) yield
    throw new Error('refused')
  }
  expect(() => atOnce(failing(2))).toThrow('refused')
  expect(() => inTurns(failing(0))).toThrow('refused')
  await expect(inTurns(failing(1))).rejects.toThrow('refused')
})
