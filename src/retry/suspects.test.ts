import { expect, test } from 'vitest'
import { ManualClock } from '../lib/clock.ts'
import { Suspects, type SuspectChange, type TrialResult } from './suspects.ts'

const pod = { family: 4, ip: '10.1.0.7', port: 8080 } as const
const other = { family: 4, ip: '10.1.0.8', port: 8080 } as const

class Court {
  readonly clock = new ManualClock()
  readonly changes: SuspectChange[] = []
  readonly trials: number[] = []
  result: TrialResult = 'fails'
  readonly suspects = new Suspects({
    clock: this.clock,
    trial: async () => {
      this.trials.push(this.clock.monotonicNow())
      return this.result
    },
    onChange: (_, change) => this.changes.push(change),
  })
}

test('a suspect that fails its trial is ejected, and back when a later trial succeeds', async () => {
  const court = new Court()
  expect(court.suspects.report(pod, 'refused')).toBe('suspected')
  await court.clock.advance(0)
  expect(court.suspects.list()).toMatchObject([{ ...pod, state: 'ejected', reason: 'refused', failedTrials: 1 }])
  expect(court.suspects.report(pod, 'silent')).toBe('ejected')
  court.result = 'answers'
  await court.clock.advance(1000)
  expect(court.suspects.list()).toEqual([])
  expect(court.changes).toEqual(['suspected', 'ejected', 'returned'])
})

test('the pauses between trials grow, up to half a minute', async () => {
  const court = new Court()
  court.suspects.report(pod, 'silent')
  await court.clock.advance(130_000)
  expect(court.trials).toEqual([0, 1, 3, 7, 15, 31, 61, 91, 121].map((seconds) => seconds * 1000))
})

test('a suspect that answers is acquitted, and trusted for a second whatever clients do', async () => {
  const court = new Court()
  court.result = 'answers'
  court.suspects.report(pod, 'silent')
  await court.clock.advance(0)
  for (let i = 0; i < 100; i++) expect(court.suspects.report(pod, 'silent')).toBe('trusted')
  expect(court.trials).toHaveLength(1)
  await court.clock.advance(1000)
  expect(court.suspects.report(pod, 'silent')).toBe('suspected')
  await court.clock.advance(0)
  expect(court.changes).toEqual(['suspected', 'acquitted', 'suspected', 'acquitted'])
})

test('a trial that could not be made says nothing: a suspect is acquitted, an ejected one stays ejected', async () => {
  const court = new Court()
  court.suspects.report(pod, 'refused')
  await court.clock.advance(0)
  court.result = 'unknown'
  court.suspects.report(other, 'refused')
  await court.clock.advance(1000)
  expect(court.suspects.list()).toMatchObject([{ ...pod, state: 'ejected' }])
})

test('one that is no backend any more is forgotten, also while it is tried', async () => {
  const court = new Court()
  court.suspects.report(pod, 'refused')
  court.suspects.forget(pod)
  await court.clock.advance(60_000)
  expect(court.suspects.list()).toEqual([])
  expect(court.changes).toEqual(['suspected', 'gone'])
  expect(court.clock.waiting).toBe(0)
})

test('more suspects than can be looked at are left alone', () => {
  const court = new Court()
  for (let port = 1; port <= 1024; port++) court.suspects.report({ ...pod, port }, 'refused')
  expect(court.suspects.report(other, 'refused')).toBe('trusted')
})
