import { expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { RateLimiter } from './rate-limiter.ts'

async function admittedAfter(limiter: RateLimiter, clock: ManualClock, waits: readonly number[]): Promise<number[]> {
  let admitted = 0
  for (let i = 0; i < 20; i++) void limiter.acquire().then(() => admitted++)
  const counts: number[] = []
  for (const ms of waits) {
    await clock.advance(ms)
    counts.push(admitted)
  }
  return counts
}

test('RateLimiter.acquire() admits a burst at once, then qps per second', async () => {
  const clock = new ManualClock()
  const limiter = new RateLimiter({ qps: 2, burst: 3 }, clock)
  expect(await admittedAfter(limiter, clock, [0, 499, 1, 1000])).toEqual([3, 3, 4, 6])
})

test('RateLimiter.acquire() admits 10 at once and 5 per second where nothing is set', async () => {
  const clock = new ManualClock()
  const limiter = new RateLimiter({ qps: 0, burst: 0 }, clock)
  expect(await admittedAfter(limiter, clock, [0, 1000])).toEqual([10, 15])
})

test('RateLimiter.acquire() never waits with a negative qps', async () => {
  const clock = new ManualClock()
  expect(await admittedAfter(new RateLimiter({ qps: -1, burst: 1 }, clock), clock, [0])).toEqual([20])
})

test('RateLimiter.acquire() rejects when the signal is aborted', async () => {
  const clock = new ManualClock()
  const limiter = new RateLimiter({ qps: 1, burst: 1 }, clock)
  const stop = new AbortController()
  await limiter.acquire(stop.signal)
  const waiting = limiter.acquire(stop.signal)
  stop.abort(new Error('stopped'))
  await expect(waiting).rejects.toThrow('stopped')
  expect(clock.waiting).toBe(0)
})
