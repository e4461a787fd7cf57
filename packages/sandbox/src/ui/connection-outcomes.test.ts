import { expect, test } from 'vitest'
import type { Flow } from '../../../../src/conntrack/driver.ts'
import { ConnectionOutcomes, type FlowMeaning } from './connection-outcomes.ts'

const meaning: FlowMeaning = { service: 'default/web', isRetried: false, client: 'outside' }
const nothing = { answered: 0, refused: 0, timedOut: 0, cut: 0, retried: 0 }

function flow(sport: number, backend: string, isAnswered = false): Flow {
  return {
    family: 4,
    protocol: 6,
    original: { src: '172.30.0.1', sport, dst: '10.96.0.9', dport: 80 },
    reply: { src: backend, sport: 3000, dst: '172.30.0.1', dport: sport },
    isAnswered,
    zone: 0,
    id: 1,
  }
}

function begin(of: FlowMeaning = meaning) {
  const clock = { ms: 0 }
  const outcomes = new ConnectionOutcomes(
    () => of,
    () => clock.ms,
  )
  return { clock, outcomes }
}

test('answered, refused, timed out: each where it happened', () => {
  const { clock, outcomes } = begin()
  for (const [sport, backend] of [
    [1, '10.0.0.1'],
    [2, '10.0.0.2'],
    [3, '10.0.0.3'],
  ] as const) {
    outcomes.note({ kind: 'begun', flow: flow(sport, backend) })
  }
  outcomes.note({ kind: 'changed', flow: flow(1, '10.0.0.1', true) })
  outcomes.note({ kind: 'changed', flow: flow(1, '10.0.0.1', true) })
  outcomes.note({ kind: 'ended', flow: flow(2, '10.0.0.2') })
  const at = { service: 'default/web', client: 'outside' }
  expect(outcomes.take()).toEqual([
    { ...at, backend: '10.0.0.1:3000', ...nothing, answered: 1 },
    { ...at, backend: '10.0.0.2:3000', ...nothing, refused: 1 },
  ])
  clock.ms = 3001
  expect(outcomes.take()).toEqual([{ ...at, backend: '10.0.0.3:3000', ...nothing, timedOut: 1 }])
  expect(outcomes.take()).toEqual([])
})

test('a client that got another endpoint was retried, not refused', () => {
  const { clock, outcomes } = begin({ ...meaning, isRetried: true })
  outcomes.note({ kind: 'begun', flow: flow(1, '10.0.0.1') })
  outcomes.note({ kind: 'ended', flow: flow(1, '10.0.0.1') })
  expect(outcomes.take()).toEqual([])
  clock.ms = 1000
  outcomes.note({ kind: 'begun', flow: flow(1, '10.0.0.2') })
  outcomes.note({ kind: 'changed', flow: flow(1, '10.0.0.2', true) })
  expect(outcomes.take()).toMatchObject([
    { backend: '10.0.0.1:3000', retried: 1, refused: 0 },
    { backend: '10.0.0.2:3000', answered: 1 },
  ])
})

test('where nobody tries again after a while, it was a refusal', () => {
  const { clock, outcomes } = begin({ ...meaning, isRetried: true })
  outcomes.note({ kind: 'begun', flow: flow(1, '10.0.0.1') })
  outcomes.note({ kind: 'ended', flow: flow(1, '10.0.0.1') })
  clock.ms = 2000
  expect(outcomes.take()).toMatchObject([{ backend: '10.0.0.1:3000', refused: 1 }])
})

test('the page’s own client knows best; what reached no endpoint counts without one', () => {
  const { clock, outcomes } = begin()
  const own = (sport: number) => ({ sport, host: '10.96.0.9', port: 80 })
  outcomes.beginOwn(own(1))
  outcomes.beginOwn(own(2))
  outcomes.note({ kind: 'begun', flow: flow(1, '10.0.0.1') })
  outcomes.note({ kind: 'changed', flow: flow(1, '10.0.0.1', true) })
  outcomes.endOwn(own(1), meaning, 'cut')
  outcomes.endOwn(own(2), meaning, 'timedOut')
  expect(outcomes.take()).toEqual([])
  clock.ms = 150
  expect(outcomes.take()).toMatchObject([
    { backend: '10.0.0.1:3000', answered: 0, cut: 1 },
    { backend: null, timedOut: 1 },
  ])
})
