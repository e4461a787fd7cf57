import { expect, test } from 'vitest'
import type { EndEvent } from '../conntrack/watch-ends.ts'
import { backendKey, OpenConnections } from './open-connections.ts'

const key = backendKey(6, '10.1.0.5', 8080)

function aCounter() {
  let nowMs = 0
  const counts = new OpenConnections(() => nowMs)
  counts.watch(new Set([key]))
  const event = (kind: EndEvent['kind'], id: number, src = '10.1.0.5') =>
    counts.add({ kind, id, protocol: 6, reply: { src, sport: 8080, dst: '10.1.0.9', dport: 1 } } as EndEvent)
  return { counts, event, pass: (ms: number) => void (nowMs += ms) }
}

test('look() has how many connections were open on average, and how many began', () => {
  const { counts, event, pass } = aCounter()
  event('begun', 1)
  pass(250)
  event('begun', 2)
  pass(250)
  event('closing', 1)
  expect(counts.look()).toEqual(new Map([[key, { open: 1.5, begun: 2 }]]))
  pass(500)
  expect(counts.look()).toEqual(new Map([[key, { open: 1, begun: 0 }]]))
  event('gone', 2)
  pass(500)
  expect(counts.look()).toEqual(new Map([[key, { open: 0, begun: 0 }]]))
})

test('other backends, ends of unknown connections and second ends count for nothing', () => {
  const { counts, event, pass } = aCounter()
  event('begun', 1, '10.1.0.6')
  event('gone', 7)
  event('begun', 2)
  event('closing', 2)
  event('gone', 2)
  pass(500)
  expect(counts.look()).toEqual(new Map([[key, { open: 0, begun: 1 }]]))
})

test('forget() counts what begins from then on', () => {
  const { counts, event, pass } = aCounter()
  event('begun', 1)
  counts.forget()
  event('gone', 1)
  event('begun', 2)
  pass(500)
  expect(counts.look().get(key)).toEqual({ open: 1, begun: 2 })
})

test('addOpen() takes what is open already, but for what ended while it was read, and counts nothing twice', async () => {
  const { counts, event, pass } = aCounter()
  await counts.addOpen(async (onOpen) => {
    event('begun', 1)
    event('gone', 2)
    for (const id of [1, 2, 3])
      onOpen({ kind: 'begun', id, protocol: 6, reply: { src: '10.1.0.5', sport: 8080 } } as EndEvent)
  })
  pass(500)
  expect(counts.look().get(key)).toEqual({ open: 2, begun: 1 })
  event('gone', 2)
  event('gone', 3)
  pass(500)
  expect(counts.look().get(key)).toEqual({ open: 1, begun: 0 })
})

test('a backend that comes back has the connections that it kept', () => {
  const { counts, event, pass } = aCounter()
  event('begun', 1)
  event('begun', 2)
  counts.watch(new Set())
  expect(counts.look()).toEqual(new Map())
  event('gone', 1)
  counts.watch(new Set([key]))
  pass(500)
  expect(counts.look().get(key)).toEqual({ open: 1, begun: 0 })
})
