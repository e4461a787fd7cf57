import { expect, test } from 'vitest'
import { Waker } from './waker.ts'

const LONG_MS = 60_000

test('wait() ends at an event, also at one that came before', async () => {
  const waker = new Waker({ keepsProcess: true })
  const { signal } = new AbortController()
  waker.wake()
  expect(await waker.wait(LONG_MS, signal)).toBe(true)
  const waiting = waker.wait(LONG_MS, signal)
  waker.wake()
  expect(await waiting).toBe(true)
  expect(await waker.wait(1, signal)).toBe(false)
})

test('wait() ends when the signal is aborted', async () => {
  const waker = new Waker({ keepsProcess: true })
  const abort = new AbortController()
  const waiting = waker.wait(LONG_MS, abort.signal)
  abort.abort()
  expect(await waiting).toBe(false)
  waker.wake()
  expect(await waker.wait(LONG_MS, abort.signal)).toBe(false)
})
