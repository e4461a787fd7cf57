import { describe, expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { ReconcileQueue } from './queue.ts'

describe('chores', () => {
  function working() {
    const clock = new ManualClock()
    const done: [number, string][] = []
    const said: string[] = []
    const state = { againInMs: undefined as number | undefined, failing: false, takesMs: 0, writesFail: false }
    let isBusy = false
    const work = async (what: string) => {
      expect(isBusy).toBe(false)
      isBusy = true
      done.push([clock.monotonicNow(), what])
      if (state.takesMs > 0) await new Promise<void>((resolve) => clock.setTimeout(resolve, state.takesMs))
      isBusy = false
    }
    const chore = {
      async run() {
        await work('chore')
        if (state.failing) throw new Error('refused')
        return state.againInMs
      },
      onFailed: (_: unknown, againInMs: number) => void said.push(`again in ${againInMs}`),
      onMended: () => void said.push('mended'),
    }
    const queue = new ReconcileQueue({
      name: 'the test',
      periods: { minMs: 0, maxMs: 3_600_000, retryMs: 5000, maxRetryMs: 5000 },
      clock,
      onError() {},
      write: async () => {
        await work('write')
        if (state.writesFail) throw new Error('refused')
        return { isComparison: false, isHealed: false }
      },
      chores: [chore],
    })
    queue.start()
    return { clock, queue, chore, done, said, state }
  }

  test('follow each write, and come again when they are due', async () => {
    const { clock, queue, done, state } = working()
    state.againInMs = 500
    queue.request()
    await clock.advance(1200)
    expect(done).toEqual([
      [0, 'write'],
      [0, 'chore'],
      [500, 'chore'],
      [1000, 'chore'],
    ])
  })

  test('never run beside a write', async () => {
    const { clock, queue, done, state } = working()
    Object.assign(state, { againInMs: 10, takesMs: 100 })
    for (let i = 0; i < 20; i++) {
      queue.request()
      await clock.advance(37)
    }
    expect(done.length).toBeGreaterThan(5)
  })

  test('that fail come again later and later, and not with the next write', async () => {
    const { clock, queue, done, said, state } = working()
    state.failing = true
    queue.request()
    await clock.advance(50)
    queue.request()
    await clock.advance(100_000)
    expect(done.filter(([, what]) => what === 'chore').map(([at]) => at)).toEqual([
      0, 100, 300, 700, 1500, 3100, 6300, 12_700, 25_500, 51_100, 81_100,
    ])
    state.failing = false
    await clock.advance(30_000)
    expect(said.slice(-2)).toEqual(['again in 30000', 'mended'])
  })

  test('do not follow a write that failed', async () => {
    const { clock, queue, done, state } = working()
    state.writesFail = true
    queue.request()
    await clock.advance(10)
    expect(done).toEqual([[0, 'write']])
  })

  test('that are woken run at once', async () => {
    const { clock, queue, chore, done } = working()
    queue.wake(chore)
    await clock.advance(10)
    expect(done).toEqual([[0, 'chore']])
  })
})
