import { describe, expect, test } from 'vitest'
import { eventually, staysQuiet } from './eventually.ts'

describe('eventually()', () => {
  test('tries until nothing is wrong', async () => {
    let tries = 0
    await eventually('it works', () => (++tries < 3 ? 'not yet' : undefined), { everyMs: 0 })
    expect(tries).toBe(3)
  })

  test('fails with the last complaint when the time is over', async () => {
    let tries = 0
    const waiting = eventually('it works', () => `try ${++tries}`, { withinMs: 1, everyMs: 1 })
    await expect(waiting).rejects.toThrow(/^Cannot see within \d+ ms that it works: try \d+$/)
    expect(tries).toBeGreaterThan(1)
  })

  test('fails at once when the complaint is fatal', async () => {
    const waiting = eventually('it works', () => ({ fatal: 'it ended' }), { withinMs: 60_000 })
    await expect(waiting).rejects.toThrow('Cannot see that it works: it ended')
  })
})

describe('staysQuiet()', () => {
  test('looks until the time is over', async () => {
    let looks = 0
    await staysQuiet('nothing happens', () => void looks++, { forMs: 10, everyMs: 1 })
    expect(looks).toBeGreaterThan(1)
  })

  test('fails at the first complaint', async () => {
    let looks = 0
    const waiting = staysQuiet('nothing happens', () => (++looks === 2 ? 'a bang' : undefined), { everyMs: 1 })
    await expect(waiting).rejects.toThrow(/^After \d+ ms it is not so that nothing happens: a bang$/)
    expect(looks).toBe(2)
  })
})
