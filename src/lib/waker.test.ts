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

test('wait() and pause() end when the signal is aborted', async () => {
  const waker = new Waker({ keepsProcess: true })
  const abort = new AbortController()
  const waits = [waker.wait(LONG_MS, abort.signal), waker.pause(LONG_MS, abort.signal)]
  abort.abort()
  expect(await Promise.all(waits)).toEqual([false, undefined])
  waker.wake()
  expect(await waker.wait(LONG_MS, abort.signal)).toBe(false)
})

test('pause() leaves what happens meanwhile to the next wait()', async () => {
  const waker = new Waker({ keepsProcess: true })
  const { signal } = new AbortController()
  const pausing = waker.pause(1, signal)
  waker.wake()
  await pausing
  expect(await waker.wait(LONG_MS, signal)).toBe(true)
})
