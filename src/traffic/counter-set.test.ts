import { asBytes } from '../lib/ip.ts'
import { expect, test } from 'vitest'
import type { CountedElement } from '../nftables/bytes/counted-element.ts'
import { CounterSet } from './counter-set.ts'

const IDLE_MS = 300_000
const element = (key: string, packets: number): CountedElement => ({ key: asBytes(key), packets, bytes: 100 * packets })
const parts = (...elements: readonly CountedElement[]) => elements.map((each) => () => [each])

test('what is left out of a list, and had packets lately, keeps its count', async () => {
  const set = new CounterSet(IDLE_MS)
  await set.follow(parts(element('a', 1), element('b', 1)), 0)
  await set.follow(parts(element('a', 5), element('b', 1)), 60_000)
  await set.follow(parts(element('b', 1)), 120_000)
  expect(Object.fromEntries(set.counts)).toMatchObject({ a: { packets: 5, bytes: 500 }, b: { packets: 1 } })
  await set.follow(parts(element('a', 6), element('b', 1)), 180_000)
  expect(set.counts.get(asBytes('a'))).toMatchObject({ packets: 6 })
})

test('what had no packets for as long as the kernel remembers, and is not listed any more, is forgotten', async () => {
  const set = new CounterSet(IDLE_MS)
  await set.follow(parts(), 0)
  await set.follow(parts(element('a', 1)), 60_000)
  await set.follow(parts(element('a', 1)), 240_000)
  await set.follow(parts(), 299_000)
  expect([...set.counts.keys()]).toEqual(['a'])
  // It may have come just after the first reading.
  await set.follow(parts(), 300_000)
  expect([...set.counts.keys()]).toEqual([])
})

test('an element that was there before the first reading may be forgotten at once', async () => {
  const set = new CounterSet(IDLE_MS)
  await set.follow(parts(element('a', 1)), 1000)
  await set.follow(parts(), 2000)
  expect(set.counts.size).toBe(0)
})

test('other work gets a turn while a long list is decoded', async () => {
  let decoded = 0
  const seen: number[] = []
  const look = () => {
    seen.push(decoded)
    if (decoded < 32) setImmediate(look)
  }
  setImmediate(look)
  const long = Array.from({ length: 32 }, (_, i) => () => (decoded++, [element(String(i), 1)]))
  await new CounterSet(IDLE_MS).follow(long, 0)
  expect(seen.length).toBeGreaterThanOrEqual(7)
})
