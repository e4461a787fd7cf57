import { expect, it } from 'vitest'
import { makeSnapshot } from '../../../../test/support/ui-snapshots.ts'
import { steps, tidyUp } from './steps.ts'
import { awayMs, findStage, loadSince } from './tour-state.ts'

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
  expect(actions.map(({ action }) => action)).toEqual(['load', 'fail', 'connect-retry', 'scale'])
})

it('a load that was started again counts from nothing', () => {
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

it('how long the rules were away is told from the start of the flush to the last of the writes that put them back', () => {
  const stage = findStage(makeSnapshot())!
  const change = {
    node: stage.node,
    mode: 'nftables',
    family: 4 as const,
    why: 'heal' as const,
    objects: [],
    moreObjects: 0,
    ports: [],
    morePorts: 0,
    beganMs: 1000,
    bytes: 1,
    commands: [],
    moreCommands: 0,
  }
  const run = {
    stage,
    baseline: { lastChange: 1, answered: 0, failed: 0, pids: {} },
    state: 'done' as const,
    answers: [{ ok: true as const, did: '', command: '', begunMs: 1000 }],
    explained: null,
    error: null,
  }
  const of = (id: number, doneMs: number, operations: number) => ({ ...change, id, doneMs, operations })
  expect(awayMs([of(1, 990, 5)], run)).toBeNull()
  expect(awayMs([of(2, 1012, 5), of(3, 1020, 9), of(4, 1500, 0)], run)).toBe(20)
})
