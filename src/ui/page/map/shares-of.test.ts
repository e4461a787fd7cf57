import { expect, test } from 'vitest'
import { makeSnapshot } from '../../../../test/support/ui-snapshots.ts'
import { NO_FLOW, NOTHING_MET } from '../flow.ts'
import { NO_RATE } from '../rates.ts'
import { sharesOf } from './shares-of.ts'

const service = makeSnapshot().services[0]!
const { id, backends } = service.ports[0]!
const [first, second] = backends.map(({ address }) => `${id}|${address}`)
const none = { pairs: new Map() }

test('sharesOf() has what part of the answered connections each endpoint got, by its pod', () => {
  const pairs = new Map([
    [first!, { ...NOTHING_MET, answered: 9 }],
    [second!, { ...NOTHING_MET, answered: 3, refused: 7 }],
  ])
  const shares = sharesOf(service, { now: { ...NO_FLOW.now, pairs } }, none)
  expect(shares.map(({ part }) => part)).toEqual([0.75, 0.25, ...backends.slice(2).map(() => 0)])
  expect(shares[0]!.name).toBe(backends[0]!.pod!.replace('default/', ''))
})

test('where nobody says what became of connections, those that the rules count', () => {
  const pairs = new Map([[second!, { ...NO_RATE, connections: 4 }]])
  expect(sharesOf(service, NO_FLOW, { pairs }).map(({ part }) => part)[1]).toBe(1)
  expect(sharesOf(service, NO_FLOW, none)).toEqual([])
})
