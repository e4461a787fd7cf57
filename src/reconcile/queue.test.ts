import { array, assert, asyncProperty, boolean, integer, record } from 'fast-check'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../lib/clock.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import type { Periods } from './pacing.ts'
import { type Cause, type QueueOptions, ReconcileQueue } from './queue.ts'

const DONE = { isComparison: false, isHealed: false }
const periods: Periods = { minMs: 1000, maxMs: 10_000, retryMs: 5000, maxRetryMs: 5000 }

/** A started queue on a manual clock that writes down when and why it ran. */
function aRunner(options: Partial<QueueOptions> & { takesMs?: number } = {}) {
  const clock = new ManualClock()
  const runs: [number, Cause][] = []
  const errors: number[] = []
  const state = { failing: false, takesMs: options.takesMs ?? 0 }
  const runner = new ReconcileQueue({
    name: 'the test',
    periods,
    clock,
    onError: (_error, _cause, retryInMs) => errors.push(retryInMs),
    write: async (cause) => {
      runs.push([clock.monotonicNow(), cause])
      if (state.takesMs > 0) await new Promise<void>((resolve) => clock.setTimeout(resolve, state.takesMs))
      if (state.failing) throw new Error('as told')
      return DONE
    },
    ...options,
  })
  runner.start()
  return { clock, runner, runs, errors, state, times: () => runs.map(([at]) => at) }
}

describe('ReconcileQueue', () => {
  test('request() runs at once when nothing has run for minMs', async () => {
    const { clock, runner, runs } = aRunner()
    runner.request()
    expect(runs).toEqual([])
    await clock.advance(0)
    expect(runs).toEqual([[0, 'change']])
  })

  test('requests within minMs of a run cost one run, at the end of minMs', async () => {
    const { clock, runner, times } = aRunner()
    runner.request()
    await clock.advance(500)
    runner.request()
    await clock.advance(499)
    runner.request()
    expect(times()).toEqual([0])
    await clock.advance(1)
    expect(times()).toEqual([0, 1000])
    await clock.advance(5000)
    expect(times()).toEqual([0, 1000])
  })

  test('nextWriteMs says how long changes have to wait, when some do', async () => {
    const { clock, runner } = aRunner({ takesMs: 100 })
    expect(runner.nextWriteMs).toBe(undefined)
    runner.request()
    await clock.advance(50)
    // A write is under way.
    expect(runner.nextWriteMs).toBe(undefined)
    await clock.advance(150)
    expect(runner.nextWriteMs).toBe(undefined)
    runner.request()
    expect(runner.nextWriteMs).toBe(900)
  })

  test('minMs is measured from the end of a run to the start of the next, and runs never overlap', async () => {
    const { clock, runner, times } = aRunner({ takesMs: 3000 })
    runner.request()
    await clock.advance(1500)
    runner.request()
    await clock.advance(2499)
    expect(times()).toEqual([0])
    await clock.advance(1)
    expect(times()).toEqual([0, 4000])
  })

  test('a request that is urgent does not wait for minMs', async () => {
    const { clock, runner, times } = aRunner()
    runner.request()
    await clock.advance(10)
    runner.request()
    runner.request('urgent')
    await clock.advance(89)
    expect(times()).toEqual([0])
    await clock.advance(1)
    expect(times()).toEqual([0, 100])
    // The next one that is not pays for it.
    runner.request()
    await clock.advance(999)
    expect(times()).toEqual([0, 100])
    await clock.advance(1)
    expect(times()).toEqual([0, 100, 1100])
  })

  test('urgent requests that never end get half of the time', async () => {
    const { clock, runner, times } = aRunner({ takesMs: 200 })
    for (let i = 0; i < 1000; i++) {
      runner.request('urgent')
      await clock.advance(10)
    }
    expect(times().length * 200).toBeLessThan(5600)
  })

  describe('with a minMs of 0', () => {
    const eager = { ...periods, minMs: 0, maxMs: 3_600_000 }

    /** Asks for a run every millisecond. */
    async function flap({ clock, runner }: Pick<ReturnType<typeof aRunner>, 'clock' | 'runner'>, ms: number) {
      for (let i = 0; i < ms; i++) {
        runner.request()
        await clock.advance(1)
      }
    }

    test('after a quiet time sixteen runs follow each other at once, then there is one in 20 ms, and after a second one in 250 ms', async () => {
      const flapping = aRunner({ periods: eager })
      await flap(flapping, 2000)
      const times = flapping.times()
      expect(times.slice(0, 16)).toEqual(Array.from({ length: 16 }, (_, i) => i))
      const pauses = times.slice(16).map((time, i) => time - times[16 + i - 1]!)
      const isQuick = pauses.lastIndexOf(20) + 1
      expect(pauses.slice(0, isQuick)).toEqual(Array.from({ length: isQuick }, () => 20))
      // The run that ends it waits for what was missing.
      expect(pauses.slice(isQuick + 1)).toEqual(pauses.slice(isQuick + 1).map(() => 250))
      expect(times[16 + isQuick]).toBeGreaterThan(600)
      expect(times[16 + isQuick]).toBeLessThan(1000)
      await flapping.clock.advance(12_000)
      const before = flapping.times().length
      await flap(flapping, 10)
      expect(flapping.times().length - before).toBe(10)
    })

    test('what comes every 250 ms or less often is never put off', async () => {
      const { clock, runner, times } = aRunner({ periods: eager })
      for (let i = 0; i < 100; i++) {
        runner.request()
        await clock.advance(250)
      }
      expect(times()).toEqual(Array.from({ length: 100 }, (_, i) => i * 250))
    })

    test('runs that never end to be asked for get a quarter of the time', async () => {
      const flapping = aRunner({ takesMs: 50, periods: eager })
      await flap(flapping, 10_000)
      const busyMs = flapping.times().length * 50
      expect(busyMs).toBeGreaterThan(1000)
      expect(busyMs).toBeLessThan(3000)
    })

    test('long runs wait for a second at most', async () => {
      const { clock, runner, times } = aRunner({ takesMs: 4000, periods: eager })
      for (let i = 0; i < 200; i++) {
        runner.request()
        await clock.advance(100)
      }
      const starts = times()
      for (const [i, start] of starts.entries()) if (i > 0) expect(start - starts[i - 1]!).toBeLessThanOrEqual(5000)
    })

    test('short or rare runs, and the first, make nothing wait', async () => {
      const first = aRunner({ takesMs: 5000, periods: eager })
      first.runner.request()
      await first.clock.advance(5000)
      first.runner.request()
      await first.clock.advance(0)
      expect(first.times()).toEqual([0, 5000])

      const rare = aRunner({ takesMs: 20, periods: eager })
      for (let i = 0; i < 20; i++) {
        rare.runner.request()
        await rare.clock.advance(100)
      }
      expect(rare.times()).toEqual(Array.from({ length: 20 }, (_, i) => i * 100))
    })
  })

  test('a request made during a run causes another run; several cause one', async () => {
    const { clock, runner, times } = aRunner({ takesMs: 100, periods: { ...periods, minMs: 0 } })
    runner.request()
    await clock.advance(50)
    runner.request()
    runner.request()
    await clock.advance(5000)
    expect(times()).toEqual([0, 100])
  })

  test('without requests it runs every maxMs, measured from the start and then from the end of each run', async () => {
    const { clock, runs } = aRunner({ takesMs: 500 })
    await clock.advance(9999)
    expect(runs).toEqual([])
    await clock.advance(20_000)
    expect(runs).toEqual([
      [10_000, 'compare'],
      [20_500, 'compare'],
    ])
  })

  test('any run puts off the periodic one', async () => {
    const { clock, runner, runs } = aRunner()
    await clock.advance(9000)
    runner.request()
    await clock.advance(10_000)
    expect(runs).toEqual([
      [9000, 'change'],
      [19_000, 'compare'],
    ])
  })

  test('a failed run is tried again after retryMs, and a successful one ends that', async () => {
    const { clock, runner, runs, errors, state } = aRunner()
    state.failing = true
    runner.request()
    await clock.advance(4999)
    state.failing = false
    expect(runs).toEqual([[0, 'change']])
    await clock.advance(1)
    expect(runs[1]).toEqual([5000, 'retry'])
    expect(errors).toEqual([5000])
    await clock.advance(9999)
    expect(runs).toHaveLength(2)
  })

  test('retries back off, doubling up to maxRetryMs, and start over after a success', async () => {
    const { clock, runner, times, state } = aRunner({
      periods: { minMs: 0, maxMs: 3_600_000, retryMs: 100, maxRetryMs: 500 },
    })
    state.failing = true
    runner.request()
    await clock.advance(2000)
    expect(times()).toEqual([0, 100, 300, 700, 1200, 1700])
    state.failing = false
    await clock.advance(200)
    expect(times().at(-1)).toBe(2200)
    state.failing = true
    runner.request()
    await clock.advance(100)
    expect(times().slice(-2)).toEqual([2200, 2300])
  })

  test('a retry waits for minMs when that is longer, and for maxMs at most', async () => {
    const slow = aRunner({ periods: { minMs: 5000, maxMs: 10_000, retryMs: 1000, maxRetryMs: 1000 } })
    slow.state.failing = true
    slow.runner.request()
    await slow.clock.advance(5000)
    expect(slow.times()).toEqual([0, 5000])

    const late = aRunner({ periods: { minMs: 0, maxMs: 1000, retryMs: 5000, maxRetryMs: 5000 } })
    late.state.failing = true
    late.runner.request()
    await late.clock.advance(1000)
    expect(late.times()).toEqual([0, 1000])
  })

  test('a request after a failure runs before the retry is due, but not within retryMs', async () => {
    const { clock, runner, times, state } = aRunner({
      periods: { minMs: 0, maxMs: 3_600_000, retryMs: 100, maxRetryMs: 10_000 },
    })
    state.failing = true
    runner.request()
    await clock.advance(700)
    expect(times()).toEqual([0, 100, 300, 700])
    for (let i = 0; i < 20; i++) {
      runner.request()
      await clock.advance(10)
    }
    expect(times()).toEqual([0, 100, 300, 700, 800, 900])
  })

  test('burst lets that many runs follow each other after a quiet time, and one per minMs accrues', async () => {
    const { clock, runner, times } = aRunner({ burst: 2 })
    for (let i = 0; i < 40; i++) {
      runner.request()
      await clock.advance(100)
    }
    expect(times()).toEqual([0, 100, 1000, 2000, 3000, 4000])
  })

  test('with minMs 0 all requests of one turn cost one run, in a turn of its own', async () => {
    const runs: number[] = []
    const turns: string[] = []
    const runner = new ReconcileQueue({
      name: 'the test',
      periods: { minMs: 0, maxMs: 60_000, retryMs: 1000, maxRetryMs: 1000 },
      clock: systemClock,
      onError: () => {},
      write: () => {
        runs.push(turns.length)
        return Promise.resolve(DONE)
      },
    })
    runner.start()
    for (let i = 0; i < 100; i++) {
      runner.request()
      turns.push('event')
    }
    await Promise.resolve()
    turns.push('microtask')
    expect(runs).toEqual([])
    await new Promise((resolve) => setImmediate(resolve))
    await new Promise((resolve) => setImmediate(resolve))
    expect(runs).toEqual([101])
    await runner.stop()
  })

  test('minMs holds on the real clock', async () => {
    const starts: number[] = []
    const runner = new ReconcileQueue({
      name: 'the test',
      periods: { minMs: 20, maxMs: 60_000, retryMs: 1000, maxRetryMs: 1000 },
      clock: systemClock,
      onError: () => {},
      write: () => {
        starts.push(performance.now())
        if (starts.length < 6) setImmediate(() => runner.request())
        return Promise.resolve(DONE)
      },
    })
    runner.start()
    runner.request()
    while (starts.length < 6) await new Promise((resolve) => setTimeout(resolve, 5))
    await runner.stop()
    for (let i = 1; i < starts.length; i++) expect(starts[i]! - starts[i - 1]!).toBeGreaterThanOrEqual(20)
  })

  test('setPeriods() changes a pause under way, in both directions', async () => {
    const { clock, runner, times } = aRunner()
    runner.request()
    await clock.advance(100)
    runner.request()
    await clock.advance(200)
    runner.setPeriods({ ...periods, minMs: 0 })
    await clock.advance(0)
    expect(times()).toEqual([0, 300])
    runner.setPeriods({ ...periods, minMs: 5000 })
    runner.request()
    await clock.advance(4999)
    expect(times()).toEqual([0, 300])
    await clock.advance(1)
    expect(times()).toEqual([0, 300, 5300])
    runner.setPeriods({ ...periods, maxMs: 1000 })
    await clock.advance(1000)
    expect(times()).toEqual([0, 300, 5300, 6300])
  })

  test('requests before start() wait for it', async () => {
    const runs: string[] = []
    const clock = new ManualClock()
    const runner = new ReconcileQueue({
      name: 'the test',
      periods,
      clock,
      onError: () => {},
      write: () => {
        runs.push('run')
        return Promise.resolve(DONE)
      },
    })
    runner.request()
    await clock.advance(100_000)
    expect(runs).toEqual([])
    runner.start()
    await clock.advance(0)
    expect(runs).toEqual(['run'])
  })

  test('stop() waits for the run under way and starts no other', async () => {
    const { clock, runner, times } = aRunner({ takesMs: 100 })
    runner.request()
    await clock.advance(50)
    let stopped = false
    const stopping = runner.stop().then(() => (stopped = true))
    runner.request()
    await clock.advance(49)
    expect(stopped).toBe(false)
    await clock.advance(1)
    await stopping
    await clock.advance(100_000)
    expect(times()).toEqual([0])
    expect(clock.waiting).toBe(0)
  })

  test('work that throws instead of rejecting is a failure too', async () => {
    const clock = new ManualClock()
    const errors: unknown[] = []
    const runner = new ReconcileQueue({
      name: 'the test',
      periods,
      clock,
      onError: (error) => errors.push(error),
      write: () => {
        throw new Error('at once')
      },
    })
    runner.start()
    runner.request()
    await clock.advance(5000)
    expect(errors).toEqual([new Error('at once'), new Error('at once')])
  })

  test.each([
    [{ ...periods, minMs: 20_000 }, 'at least minMs (20000)'],
    [{ ...periods, minMs: -1 }, 'must not be negative'],
    [{ ...periods, retryMs: 0 }, 'must be more than 0'],
    [{ ...periods, maxRetryMs: 1 }, 'at least the first'],
  ])('refuses the periods %o', (wrong, message) => {
    expect(() => aRunner({ periods: wrong })).toThrow(message)
    expect(() => aRunner().runner.setPeriods(wrong)).toThrow(message)
  })

  test('keeps its guarantees whatever the requests, durations and failures', async () => {
    const steps = array(
      record({ waitMs: integer({ min: 0, max: 400 }), takesMs: integer({ min: 0, max: 150 }), failing: boolean() }),
      { maxLength: 25 },
    )
    await assert(
      asyncProperty(integer({ min: 0, max: 100 }), steps, async (minMs, steps) => {
        const periods = { minMs, maxMs: 300, retryMs: 40, maxRetryMs: 80 }
        const clock = new ManualClock()
        const runs: { startMs: number; endMs: number; failed: boolean }[] = []
        const requests: number[] = []
        let next = { takesMs: 0, failing: false }
        const runner = new ReconcileQueue({
          name: 'the test',
          periods,
          clock,
          onError: () => {},
          write: async () => {
            const run = { startMs: clock.monotonicNow(), endMs: Infinity, failed: next.failing }
            const { takesMs } = next
            runs.push(run)
            await new Promise<void>((resolve) => clock.setTimeout(resolve, takesMs))
            run.endMs = clock.monotonicNow()
            if (run.failed) throw new Error('as told')
            return DONE
          },
        })
        runner.start()
        for (const step of steps) {
          next = step
          requests.push(clock.monotonicNow())
          runner.request()
          await clock.advance(step.waitMs)
        }
        next = { takesMs: 0, failing: false }
        await clock.advance(1000)
        void runner.stop()

        for (const [index, run] of runs.slice(1).entries()) {
          const { endMs, failed } = runs[index]!
          const pauseMs = run.startMs - endMs
          expect(pauseMs).toBeGreaterThanOrEqual(failed ? Math.max(minMs, 40) : minMs)
          expect(pauseMs).toBeLessThanOrEqual(failed ? Math.max(minMs, 80) : 300)
        }
        // Every request is served by a run that starts at or after it.
        for (const atMs of requests) expect(runs.some(({ startMs }) => startMs >= atMs)).toBe(true)
      }),
      { numRuns: 40 },
    )
  })
})
