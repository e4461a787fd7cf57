import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Refresher } from './refresher.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function start() {
  const asked: { signal: AbortSignal; answer: (value: number) => void; fail: (error: Error) => void }[] = []
  const results: unknown[] = []
  const refresher = new Refresher<number>(400, {
    ask: (signal) => new Promise((answer, fail) => asked.push({ signal, answer, fail })),
    answered: (value) => results.push(value),
    failed: (error) => results.push(String(error)),
  })
  return { refresher, asked, results }
}

test('asks once at a time, however much changes, and once more when something did', async () => {
  const { refresher, asked, results } = start()
  for (let i = 0; i < 50; i++) refresher.again()
  await vi.advanceTimersByTimeAsync(5000)
  expect(asked).toHaveLength(1)
  asked[0]!.answer(1)
  await vi.advanceTimersByTimeAsync(399)
  expect([asked.length, results]).toEqual([1, [1]])
  await vi.advanceTimersByTimeAsync(1)
  asked[1]!.answer(2)
  await vi.advanceTimersByTimeAsync(5000)
  expect([asked.length, results]).toEqual([2, [1, 2]])
  refresher.again()
  refresher.again()
  await vi.advanceTimersByTimeAsync(400)
  expect(asked).toHaveLength(3)
})

test('goes on after a failure', async () => {
  const { refresher, asked, results } = start()
  asked[0]!.fail(new Error('no'))
  await vi.advanceTimersByTimeAsync(0)
  refresher.again()
  await vi.advanceTimersByTimeAsync(400)
  expect([asked.length, results]).toEqual([2, ['Error: no']])
})

test('that is closed gets nothing, asks no more, and ends the question under way', async () => {
  const { refresher, asked, results } = start()
  refresher.again()
  refresher.close()
  expect(asked[0]!.signal.aborted).toBe(true)
  asked[0]!.answer(1)
  refresher.again()
  await vi.advanceTimersByTimeAsync(5000)
  expect([asked.length, results]).toEqual([1, []])
})
