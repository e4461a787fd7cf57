import { expect, test } from 'vitest'
import type { Clock } from '../lib/clock.ts'
import { createMetrics } from '../metrics/metrics.ts'
import { Tripwire } from './tripwire.ts'

const build = { major: '', minor: '', version: '', commit: '', treeState: '', buildDate: '' }

/** An event loop whose one timer fires when the test says so, after so much time of which so much was work. */
function aTripwire() {
  const warnings: unknown[] = []
  const state = { nowMs: 0, activeMs: 0, call: { name: '', ms: 0 } }
  let timer: { callback: () => void; delayMs: number } | undefined
  const clock = {
    monotonicNow: () => state.nowMs,
    setTimeout: (callback: () => void, delayMs: number) => {
      timer = { callback, delayMs }
      return { cancel: () => (timer = undefined) }
    },
  } as unknown as Clock
  const metrics = createMetrics({ shown: [], build })
  const tripwire = new Tripwire({
    metrics,
    clock,
    log: { warn: (text, values) => void warnings.push([text, values]) },
    activeMs: () => state.activeMs,
    takeLongestCall: () => {
      const { call } = state
      state.call = { name: '', ms: 0 }
      return call
    },
  })
  tripwire.start()
  const pass = ({ lateMs = 0, workMs = 0, call = state.call } = {}) => {
    state.nowMs += timer!.delayMs + lateMs
    state.activeMs += workMs
    state.call = call
    timer!.callback()
  }
  const shown = (name: string) => new RegExp(`^${name} (\\S+)$`, 'm').exec(metrics.text())?.[1]
  return { tripwire, warnings, pass, delay: () => timer?.delayMs, shown }
}

test('a turn that makes the timer late is measured, and one of more than a second is worth a line', () => {
  const { warnings, pass, shown } = aTripwire()
  pass({ lateMs: 60, workMs: 120 })
  expect(shown('kubeproxyts_longest_turn_seconds')).toBe('0.12')
  expect(warnings).toEqual([])
  pass({ lateMs: 1450, workMs: 1500, call: { name: 'send', ms: 30 } })
  expect(shown('kubeproxyts_longest_turn_seconds')).toBe('1.5')
  expect(warnings).toEqual([
    [expect.stringContaining('busy with one thing'), { tookMs: 1500, longestCall: 'send', callMs: 30 }],
  ])
})

test('a long system call is named', () => {
  const { warnings, pass, shown } = aTripwire()
  pass({ lateMs: 3000, workMs: 3000, call: { name: 'send', ms: 2900 } })
  expect(warnings).toEqual([[expect.stringContaining('system call'), { call: 'send', tookMs: 2900 }]])
  pass()
  expect(shown('kubeproxyts_longest_system_call_seconds')).toBe('2.9')
  expect(warnings).toHaveLength(1)
})

test('a process that was stopped for a while did not work, and is not blamed', () => {
  const { warnings, pass, shown } = aTripwire()
  pass({ lateMs: 60_000, workMs: 1 })
  expect(shown('kubeproxyts_longest_turn_seconds')).toBe('0.001')
  expect(warnings).toEqual([])
})

test('at rest it wakes once a second, at work ten times, and not at all when it is stopped', () => {
  const { tripwire, pass, delay } = aTripwire()
  pass()
  expect(delay()).toBe(1000)
  pass({ workMs: 200 })
  expect(delay()).toBe(100)
  tripwire.stop()
  expect(delay()).toBeUndefined()
})
