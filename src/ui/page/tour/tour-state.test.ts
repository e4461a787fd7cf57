import { expect, it } from 'vitest'
import { makeSnapshot } from '../../../../test/support/ui-snapshots.ts'
import { steps, tidyUp } from './steps.ts'
import { findStage, loadSince } from './tour-state.ts'

it('the tour has seven steps, and a stage in every sandbox with a service', () => {
  expect(steps).toHaveLength(7)
  expect(findStage(makeSnapshot())).toMatchObject({ id: 'default/whoami', address: '10.96.0.20', node: 'node-1' })
  expect(findStage(makeSnapshot({ services: 0 }))).toBeNull()
})

it('a step that needs the client starts it where it does not run', () => {
  const snapshot = makeSnapshot()
  const stage = findStage(snapshot)!
  const flush = steps[4]!
  expect(flush.actions(stage, snapshot).map(({ action }) => action)).toEqual(['load', 'flush'])
  const running = { ...snapshot, load: { from: 'outside', to: 'default/whoami', perSecond: 10 } }
  expect(flush.actions(stage, running).map(({ action }) => action)).toEqual(['flush'])
})

it('afterwards everything can be put back', () => {
  const snapshot = makeSnapshot()
  const pods = snapshot.pods.map((pod, i) => ({ ...pod, fail: i === 0 ? ('refuse' as const) : pod.fail }))
  const actions = tidyUp({ ...snapshot, pods }, findStage(snapshot)!, 3)
  expect(actions.map(({ action }) => action)).toEqual(['load-end', 'fail', 'connect-retry', 'scale'])
})

it('a load that was begun anew counts from nothing', () => {
  const baseline = { lastChange: 0, answered: 100, failed: 2, pids: {} }
  const load = {
    request: { from: '', to: '', perSecond: 1 },
    url: '',
    running: true,
    byPod: {},
    lastError: null,
    medianMs: null,
    p99Ms: null,
    refused: 0,
    timedOut: 0,
    cut: 0,
  }
  expect(loadSince({ ...load, answered: 130, failed: 2 }, baseline)).toEqual({ answered: 30, failed: 0 })
  expect(loadSince({ ...load, answered: 5, failed: 0 }, baseline)).toEqual({ answered: 5, failed: 0 })
})
