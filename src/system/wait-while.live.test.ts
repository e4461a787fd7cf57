import { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { waitWhile } from './wait-while.ts'

/** Wakes whoever waits for the first word, and changes it after so many times. */
function startWaker(words: Int32Array, times: number): Worker {
  const program = `
    const { workerData: { words, times } } = require('node:worker_threads')
    for (let i = 1; Atomics.load(words, 1) === 0; i++) {
      if (i === times) Atomics.store(words, 0, 7)
      Atomics.notify(words, 0)
      Atomics.wait(words, 1, 0, 2)
    }`
  return new Worker(program, { eval: true, workerData: { words, times } })
}

test.each([
  ['returns when the word has changed, and not when it is only woken', 20, true],
  ['gives up when it is woken again and again, and nothing changes', Infinity, false],
])('%s', async (_, times, hasChanged) => {
  const words = new Int32Array(new SharedArrayBuffer(8))
  const waker = startWaker(words, times)
  const startMs = performance.now()
  expect(waitWhile(words, 0, 0, hasChanged ? 60_000 : 300)).toBe(hasChanged)
  expect(Atomics.load(words, 0)).toBe(hasChanged ? 7 : 0)
  if (!hasChanged) expect(performance.now() - startMs).toBeGreaterThanOrEqual(299)
  Atomics.store(words, 1, 1)
  Atomics.notify(words, 1)
  await new Promise((resolve) => void waker.once('exit', resolve))
})

test('does not wait for what has changed already', () => {
  expect(waitWhile(new Int32Array(new SharedArrayBuffer(4)), 0, 1, 0)).toBe(true)
})
