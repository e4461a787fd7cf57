import { expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { Rest } from './rest.ts'

const MB = 1 << 20

function aProxy() {
  const clock = new ManualClock()
  const state = { memory: 90 * MB, given: 0 }
  const giveBack = () => {
    state.given++
    state.memory = 50 * MB
  }
  return { clock, state, rest: new Rest({ clock, giveBack, memory: () => state.memory }) }
}

test('memory is given back two seconds after the last of the first syncs', async () => {
  const { clock, state, rest } = aProxy()
  rest.synced()
  await clock.advance(1500)
  rest.synced()
  await clock.advance(1500)
  expect(state.given).toBe(0)
  await clock.advance(500)
  expect(state.given).toBe(1)
})

test('once it is given back, no timer runs, and a change alone is no reason to do it again', async () => {
  const { clock, state, rest } = aProxy()
  rest.synced()
  await clock.advance(2000)
  expect(clock.waiting).toBe(0)
  state.memory += 15 * MB
  rest.synced()
  await clock.advance(60_000)
  expect(state.given).toBe(1)
  expect(clock.waiting).toBe(0)
})

test('after changes that took much memory, it is given back again, but not in their midst', async () => {
  const { clock, state, rest } = aProxy()
  rest.synced()
  await clock.advance(60_000)
  for (let i = 0; i < 100; i++) {
    state.memory += MB
    rest.synced()
    await clock.advance(100)
    expect(clock.waiting).toBe(1)
  }
  expect(state.given).toBe(1)
  await clock.advance(2000)
  expect(state.given).toBe(2)
})

test('no more than once a minute', async () => {
  const { clock, state, rest } = aProxy()
  for (let i = 0; i < 100; i++) {
    state.memory = 90 * MB
    rest.synced()
    await clock.advance(6000)
  }
  expect(state.given).toBe(10)
})

test('a proxy that is stopped does not', async () => {
  const { clock, state, rest } = aProxy()
  rest.synced()
  rest.stop()
  await clock.advance(10_000)
  expect(state.given).toBe(0)
})
