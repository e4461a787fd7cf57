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

test('what has no steps is done in this turn', async () => {
  const done: number[] = []
  const result = inTurns(count(1, done))
  expect(done).toEqual([0])
  const turn = new Promise((resolve) => void setImmediate(() => resolve('a turn')))
  expect(await Promise.race([turn, inTurns(count(0, []))])).toBe('counted')
  await result
})

test('an error is thrown by what is done at once, and breaks the promise of what is done in turns', async () => {
  function* failing(steps: number): Steps<never> {
    for (let i = 0; i < steps; i++) yield
    throw new Error('refused')
  }
  expect(() => atOnce(failing(2))).toThrow('refused')
  await expect(inTurns(failing(0))).rejects.toThrow('refused')
  await expect(inTurns(failing(1))).rejects.toThrow('refused')
})
