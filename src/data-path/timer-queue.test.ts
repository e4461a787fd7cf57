import { describe, expect, test } from 'vitest'
import { patience } from '../../test/support/patience.ts'
import { TimerQueue } from './timer-queue.ts'

function aQueue(durationMs: number) {
  const expired: string[] = []
  return { queue: new TimerQueue<string>(durationMs, (item) => expired.push(item)), expired }
}

describe('TimerQueue', () => {
  test('expire() calls back for what is due, in order, and once', () => {
    const { queue, expired } = aQueue(100)
    queue.start('a', 0)
    queue.start('b', 50)
    queue.expire(99)
    expect(expired).toEqual([])
    queue.expire(100)
    expect(expired).toEqual(['a'])
    queue.expire(1000)
    queue.expire(2000)
    expect(expired).toEqual(['a', 'b'])
  })

  test('stop() takes an item out', () => {
    const { queue, expired } = aQueue(100)
    queue.start('a', 0)
    queue.start('b', 0)
    queue.stop('a')
    queue.expire(100)
    expect(expired).toEqual(['b'])
  })

  test('start() of an item that waits begins its time again', () => {
    const { queue, expired } = aQueue(100)
    queue.start('a', 0)
    queue.start('a', 90)
    queue.expire(100)
    expect(expired).toEqual([])
    queue.expire(190)
    expect(expired).toEqual(['a'])
  })

  test('earliestMs says until when there is nothing to do', () => {
    const { queue } = aQueue(100)
    expect(queue.earliestMs).toBe(Infinity)
    queue.start('a', 5)
    queue.start('b', 10)
    expect(queue.earliestMs).toBe(105)
    queue.expire(105)
    expect(queue.earliestMs).toBe(110)
    queue.expire(110)
    expect(queue.earliestMs).toBe(Infinity)
  })

  test('a hundred thousand that come and go take no time', () => {
    const { queue, expired } = aQueue(100)
    const startMs = performance.now()
    for (let i = 0; i < 100_000; i++) {
      queue.start(`${i}`, i / 100)
      if (i >= 1000) queue.stop(`${i - 1000}`)
      queue.expire(i / 100)
    }
    expect(expired).toEqual([])
    expect(performance.now() - startMs).toBeLessThan(2000 * patience())
  })

  test('what a callback starts again waits its whole time', () => {
    const times: number[] = []
    let nowMs = 0
    const queue: TimerQueue<string> = new TimerQueue(100, (item) => {
      times.push(nowMs)
      queue.start(item, nowMs)
    })
    queue.start('a', 0)
    for (; nowMs < 350; nowMs += 50) queue.expire(nowMs)
    expect(times).toEqual([100, 200, 300])
  })
})
