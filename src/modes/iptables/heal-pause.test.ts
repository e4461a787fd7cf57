import { expect, it } from 'vitest'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { HealPause } from './heal-pause.ts'

function aPause() {
  const clock = new ManualClock()
  const heals: number[] = []
  const pause = new HealPause(clock, () => heals.push(clock.monotonicNow()))
  return { clock, heals, pause }
}

it('HealPause heals once for changes that come together', async () => {
  const { clock, heals, pause } = aPause()
  pause.request()
  await clock.advance(20)
  pause.request()
  await clock.advance(100)
  expect(heals).toEqual([50])
})

it('HealPause waits ten times as long as the last comparison took', async () => {
  const { clock, heals, pause } = aPause()
  pause.compared(400)
  pause.request()
  await clock.advance(3999)
  expect(heals).toEqual([])
  await clock.advance(1)
  expect(heals).toEqual([4000])
})

it('HealPause.check() heals at once, but spends only a fiftieth of the time on it', async () => {
  const { clock, heals, pause } = aPause()
  pause.check()
  pause.compared(400)
  await clock.advance(19_999)
  pause.check()
  await clock.advance(1)
  pause.check()
  expect(heals).toEqual([0, 20_000])
})

it('HealPause does nothing after it was closed', async () => {
  const { clock, heals, pause } = aPause()
  pause.request()
  pause.close()
  await clock.advance(1000)
  expect(heals).toEqual([])
})
