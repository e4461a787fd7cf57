import { describe, expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { type Cause, type QueueOptions, ReconcileQueue } from './queue.ts'

describe('rules that another program changed', () => {
  const eager = { minMs: 0, maxMs: 3_600_000, retryMs: 100, maxRetryMs: 100 }

  /** A queue whose writes find something to restore, or not. */
  function healing(options: Partial<QueueOptions> & { takesMs?: number } = {}) {
    const clock = new ManualClock()
    const runs: [number, Cause][] = []
    const said: string[] = []
    const state = { isHealed: true, failing: false, takesMs: options.takesMs ?? 0 }
    const queue = new ReconcileQueue({
      name: 'the test',
      periods: eager,
      clock,
      onError: (_, cause) => said.push(`${cause} failed`),
      onPostponed: () => said.push('postponed'),
      onFight: () => said.push('fight'),
      write: async (cause) => {
        runs.push([clock.monotonicNow(), cause])
        if (state.takesMs > 0) await new Promise<void>((resolve) => clock.setTimeout(resolve, state.takesMs))
        if (state.failing) throw new Error('refused')
        return { isComparison: true, isHealed: cause === 'heal' && state.isHealed }
      },
      ...options,
    })
    queue.start()
    return { clock, queue, runs, said, state, times: () => runs.map(([at]) => at) }
  }

  /** The other program changes rules whenever they are restored. */
  async function fight({ clock, queue }: Pick<ReturnType<typeof healing>, 'clock' | 'queue'>, ms: number) {
    for (let passed = 0; passed < ms; passed += 10) {
      queue.heal()
      await clock.advance(10)
    }
  }

  test('are restored at once, and again after 50 ms', async () => {
    const { clock, queue, runs, said } = healing()
    queue.heal()
    await clock.advance(0)
    queue.heal()
    await clock.advance(49)
    expect(runs).toEqual([[0, 'heal']])
    await clock.advance(1)
    expect(runs).toEqual([
      [0, 'heal'],
      [50, 'heal'],
    ])
    expect(said).toEqual([])
  })

  test('a fight is slowed down to once in two seconds, which is said once', async () => {
    const fighting = healing()
    await fight(fighting, 600_000)
    const times = fighting.times().filter((ms) => ms < 600_000)
    expect(times.filter((ms) => ms < 5000)).toHaveLength(100)
    const later = times.filter((ms) => ms >= 60_000)
    expect(later).toHaveLength(270)
    expect(Math.max(...later.slice(1).map((ms, i) => ms - later[i]!))).toBe(2000)
    expect(fighting.said.filter((each) => each === 'fight')).toHaveLength(1)
    expect(fighting.said).toContain('postponed')
  })

  test('the budget recovers when the fight is over', async () => {
    const fighting = healing()
    await fight(fighting, 10_000)
    await fighting.clock.advance(290_000)
    await fight(fighting, 5000)
    expect(fighting.times().filter((ms) => ms >= 300_000 && ms < 305_000)).toHaveLength(100)
    await fight(fighting, 5000)
    expect(fighting.said.filter((each) => each === 'fight')).toHaveLength(2)
  })

  test('comparisons that find nothing cost nothing of the budget', async () => {
    const quiet = healing()
    quiet.state.isHealed = false
    await fight(quiet, 10_000)
    expect(quiet.times().filter((ms) => ms < 10_000)).toHaveLength(200)
    expect(quiet.said).toEqual([])
  })

  test('what is changed while they are restored is restored afterwards, once', async () => {
    const { clock, queue, times } = healing({ takesMs: 100 })
    queue.heal()
    await clock.advance(50)
    for (let i = 0; i < 5; i++) queue.heal()
    await clock.advance(1000)
    expect(times()).toEqual([0, 100])
  })

  test('a write for another reason restores them, too, and pays for it', async () => {
    const { clock, queue, runs } = healing()
    queue.heal()
    queue.request()
    await clock.advance(1000)
    expect(runs).toEqual([[0, 'heal']])
  })

  test('after a failure they wait as changes do', async () => {
    const { clock, queue, runs, state, said } = healing()
    state.failing = true
    queue.heal()
    await clock.advance(0)
    for (let i = 0; i < 20; i++) {
      queue.heal()
      await clock.advance(10)
    }
    expect(runs).toEqual([
      [0, 'heal'],
      [100, 'retry'],
      [200, 'retry'],
    ])
    expect(said).toEqual(['heal failed', 'retry failed', 'retry failed'])
  })

  describe('in tables that other programs use, too', () => {
    const sharedTables = { groupMs: 50, share: 0.1, idleShare: 0.02 }

    test('changes that come together cost one comparison', async () => {
      const { clock, queue, times } = healing({ sharedTables })
      queue.heal()
      await clock.advance(20)
      queue.heal()
      await clock.advance(1000)
      expect(times()).toEqual([50])
    })

    test('the pause is ten times as long as the last comparison', async () => {
      const { clock, queue, times } = healing({ sharedTables, takesMs: 400 })
      queue.heal()
      await clock.advance(450)
      queue.heal()
      await clock.advance(3999)
      expect(times()).toEqual([50])
      await clock.advance(1)
      expect(times()).toEqual([50, 4450])
    })

    test('a change does not wait for the comparison, nor begin it', async () => {
      const { clock, queue, runs } = healing({ sharedTables })
      queue.heal()
      queue.request()
      await clock.advance(1000)
      expect(runs).toEqual([
        [0, 'change'],
        [50, 'heal'],
      ])
    })

    test('without a sign of a change, comparisons take a fiftieth of the time', async () => {
      const { clock, queue, times } = healing({ sharedTables, takesMs: 400 })
      expect(queue.heal('perhaps')).toBe(true)
      await clock.advance(400 + 19_999)
      expect(queue.heal('perhaps')).toBe(false)
      await clock.advance(1)
      expect(queue.heal('perhaps')).toBe(true)
      await clock.advance(1000)
      expect(times()).toEqual([0, 20_400])
    })
  })

  test('nothing is restored after stop()', async () => {
    const { clock, queue, runs } = healing()
    queue.heal()
    await queue.stop()
    await clock.advance(1000)
    expect(runs).toEqual([])
  })
})
