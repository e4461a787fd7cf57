import { expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { createMetrics } from '../metrics/metrics.ts'
import type { SyncStats } from './programmer.ts'
import { Drift, formatDrift } from './drift.ts'

const build = { major: '', minor: '', version: '', commit: '', treeState: '', buildDate: '' }
const NOTHING: SyncStats = { transactions: 0, operations: 0, bytes: 0 }
const SOMETHING: SyncStats = { transactions: 1, operations: 30, bytes: 5, commands: () => ['add rule ip t c accept'] }

function open() {
  const clock = new ManualClock(Date.UTC(2026, 0, 1))
  const metrics = createMetrics({ shown: [], build })
  const drift = new Drift({ family: 'IPv4', metrics, clock })
  const shown = () =>
    metrics
      .text()
      .split('\n')
      .filter((line) => /^kubeproxyts_(kernel|drift)/.test(line))
      .map((line) => Number(line.replace(/.* /, '')))
  return { clock, drift, shown }
}

test('before anything is programmed the kernel does not hold it, and then it does', async () => {
  const { clock, drift, shown } = open()
  expect(shown()).toEqual([0, 0, Date.UTC(2026, 0, 1) / 1000])
  await clock.advance(5000)
  drift.applied({ isComparison: true, mayDiffer: true, operations: SOMETHING })
  expect(drift.state).toMatchObject({ holds: true, sinceMs: Date.UTC(2026, 0, 1) + 5000, times: 0, found: [] })
  expect(shown()).toEqual([0, 1, 0])
})

test('a difference that is found without a reason of ours is another program’s', async () => {
  const { clock, drift, shown } = open()
  drift.applied({ isComparison: true, mayDiffer: true, operations: SOMETHING })
  await clock.advance(3_600_000)
  drift.applied({ isComparison: true, mayDiffer: false, operations: SOMETHING })
  expect(drift.state).toMatchObject({ holds: true, times: 1, sinceMs: clock.now() })
  expect(shown()).toEqual([30, 1, 0])
  drift.applied({ isComparison: true, mayDiffer: false, operations: NOTHING })
  drift.applied({ isComparison: true, mayDiffer: true, operations: SOMETHING })
  expect(drift.state.times).toBe(1)
})

test('what was heard of counts when there is a difference, and is timed', async () => {
  const { clock, drift } = open()
  drift.applied({ isComparison: true, mayDiffer: true, operations: SOMETHING })
  drift.suspect()
  drift.applied({ isComparison: true, mayDiffer: true, operations: NOTHING })
  expect(drift.state.times).toBe(0)
  drift.suspect()
  await clock.advance(12)
  drift.applied({ isComparison: true, mayDiffer: true, operations: SOMETHING })
  expect(formatDrift('IPv4', drift.state)).toMatchInlineSnapshot(`
    "IPv4: the kernel holds what was decided, since 2026-01-01T00:00:00.012Z
      compared as a whole: 2026-01-01T00:00:00.012Z
      differed 1 time; the last, restored 2026-01-01T00:00:00.012Z after 12 ms, took:
        add rule ip t c accept
        ... 30 operations in all"
  `)
  for (let i = 0; i < 20; i++) drift.applied({ isComparison: true, mayDiffer: false, operations: SOMETHING })
  expect([drift.state.times, drift.state.found.length]).toEqual([21, 5])
})

test('a failure, a refusal and a wait are reported with their reasons, since the first of them', async () => {
  const { clock, drift, shown } = open()
  drift.applied({ isComparison: true, mayDiffer: true, operations: SOMETHING })
  drift.suspect()
  const sinceMs = clock.now()
  await clock.advance(1000)
  drift.postponed()
  expect(drift.state).toMatchObject({
    holds: false,
    sinceMs,
    reason: expect.stringMatching(/keeps changing/) as string,
  })
  await clock.advance(1000)
  drift.refused('EPERM')
  expect(drift.state).toMatchObject({ holds: false, sinceMs, reason: 'EPERM' })
  expect(shown()).toEqual([0, 0, sinceMs / 1000])
  drift.applied({ isComparison: true, mayDiffer: true, operations: { ...SOMETHING, refused: 2 } })
  expect(drift.state).toMatchObject({
    holds: false,
    sinceMs,
    reason: 'the kernel refuses the rules of 2 service ports',
  })
  drift.applied({ isComparison: true, mayDiffer: true, operations: SOMETHING })
  expect(drift.state).toMatchObject({ holds: true, sinceMs: clock.now() })
})
