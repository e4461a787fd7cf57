import { describe, expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { PausedReading } from './pause-reading.ts'

/** A watch that reads, events of which will be written in so many milliseconds, and what happens to its socket. */
function aWatch(state: { nextWriteMs: number | undefined }) {
  const clock = new ManualClock()
  const calls: [string, number][] = []
  const note = (call: string) => calls.push([call, clock.monotonicNow()])
  const socket = { pause: () => note('pause'), resume: () => note('resume') } as unknown as ConstructorParameters<
    typeof PausedReading
  >[0]
  const reading = new PausedReading(socket, { clock, nextWriteMs: () => state.nextWriteMs })
  return { clock, calls, reading }
}

describe('PausedReading', () => {
  test('stops while what was read waits, until shortly before it is written', async () => {
    const { clock, calls, reading } = aWatch({ nextWriteMs: 200 })
    reading.read(500)
    reading.read(500)
    await clock.advance(1000)
    expect(calls).toEqual([
      ['pause', 0],
      ['resume', 180],
    ])
  })

  test('goes on when nothing waits, or not for long', async () => {
    const state: { nextWriteMs: number | undefined } = { nextWriteMs: undefined }
    const { clock, calls, reading } = aWatch(state)
    for (const nextWriteMs of [undefined, 0, 20, 69]) {
      state.nextWriteMs = nextWriteMs
      reading.read(500)
      await clock.advance(100)
    }
    expect(calls).toEqual([])
  })

  test('stops for a quarter of a second at most', async () => {
    const { clock, calls, reading } = aWatch({ nextWriteMs: 10_000 })
    reading.read(500)
    await clock.advance(1000)
    expect(calls.at(-1)).toEqual(['resume', 250])
  })

  test('goes on when much comes, and looks again after what would have been a pause', async () => {
    const { clock, calls, reading } = aWatch({ nextWriteMs: 200 })
    reading.read(40_000)
    await clock.advance(100)
    reading.read(40_000)
    await clock.advance(100)
    expect(calls.map(([call]) => call)).not.toContain('pause')
    reading.read(500)
    await clock.advance(0)
    expect(calls.map(([call]) => call)).not.toContain('pause')
    await clock.advance(300)
    reading.read(500)
    await clock.advance(0)
    expect(calls.at(-1)?.[0]).toBe('pause')
  })

  test('does nothing any more when it is closed', async () => {
    const { clock, calls, reading } = aWatch({ nextWriteMs: 200 })
    reading.read(500)
    reading.close()
    await clock.advance(1000)
    expect(calls).toEqual([])
  })
})
