import { describe, expect, test } from 'vitest'
import { systemClock } from './clock.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'

describe('systemClock', () => {
  test('setTimeout() does not fire early when the delay is longer than 32 bits hold', async () => {
    let fired = false
    const timer = systemClock.setTimeout(() => (fired = true), 2 ** 31 + 1000)
    await new Promise((resolve) => setTimeout(resolve, 20))
    timer.cancel()
    expect(fired).toBe(false)
  })

  test('setTimeout() fires after its delay, and not when cancelled', async () => {
    const fired: string[] = []
    const startMs = systemClock.monotonicNow()
    const cancelled = systemClock.setTimeout(() => fired.push('cancelled'), 5)
    await new Promise<void>((resolve) => {
      systemClock.setTimeout(() => {
        fired.push('kept')
        resolve()
      }, 10)
      cancelled.cancel()
    })
    expect(fired).toEqual(['kept'])
    expect(systemClock.monotonicNow() - startMs).toBeGreaterThanOrEqual(9)
  })

  test('setImmediate() waits for the current turn, and can be taken back', async () => {
    const order: string[] = []
    systemClock.setImmediate(() => order.push('cancelled')).cancel()
    await new Promise<void>((resolve) => {
      systemClock.setImmediate(() => {
        order.push('immediate')
        resolve()
      })
      order.push('turn')
      void Promise.resolve().then(() => order.push('microtask'))
    })
    expect(order).toEqual(['turn', 'microtask', 'immediate'])
  })
})

describe('ManualClock', () => {
  test('advance() calls timers in order, each at its own moment', async () => {
    const clock = new ManualClock(1000)
    const seen: [string, number][] = []
    clock.setTimeout(() => seen.push(['b', clock.now()]), 20)
    clock.setTimeout(() => seen.push(['a', clock.now()]), 10)
    clock.setTimeout(() => seen.push(['late', clock.now()]), 31)
    await clock.advance(30)
    expect(seen).toEqual([
      ['a', 1010],
      ['b', 1020],
    ])
    expect(clock.now()).toBe(1030)
    expect(clock.waiting).toBe(1)
  })

  test('advance() also calls what a callback schedules within the span, after its promises have settled', async () => {
    const clock = new ManualClock()
    const seen: number[] = []
    const again = async (): Promise<void> => {
      await Promise.resolve()
      seen.push(clock.monotonicNow())
      clock.setTimeout(() => void again(), 10)
    }
    clock.setTimeout(() => void again(), 10)
    await clock.advance(35)
    expect(seen).toEqual([10, 20, 30])
  })

  test('setWallClock() moves now() and leaves monotonicNow() and timers alone', async () => {
    const clock = new ManualClock(1000)
    let fired = 0
    clock.setTimeout(() => fired++, 10)
    clock.setWallClock(500)
    expect(clock.now()).toBe(500)
    expect(clock.monotonicNow()).toBe(0)
    await clock.advance(9)
    expect(fired).toBe(0)
    await clock.advance(1)
    expect(fired).toBe(1)
    expect(clock.now()).toBe(510)
  })
})
