import { expect, test } from 'vitest'
import { BEGUN, createBackendCounters, readBackendTotals, SENT_BYTES, BackendCounters } from './backend-counters.ts'

const nothing = { begun: 0, sentPackets: 0, sentBytes: 0, receivedPackets: 0, receivedBytes: 0 }

test('threads count on their own, and the sum is reported by backend', () => {
  const memory = createBackendCounters(2, 4)
  const threads = [new BackendCounters(0, 2), new BackendCounters(1, 2)]
  for (const thread of threads) thread.use(memory)
  threads[0]!.add(7, BEGUN, 1)
  threads[0]!.add(7, SENT_BYTES, 1000)
  threads[1]!.add(9, SENT_BYTES, 5)
  threads[1]!.add(7, SENT_BYTES, 234)
  expect(readBackendTotals(memory, 2)).toEqual(
    new Map([
      [7, { ...nothing, begun: 1, sentBytes: 1234 }],
      [9, { ...nothing, sentBytes: 5 }],
    ]),
  )
})

test('nothing is counted without memory, and what comes later is counted from 0', () => {
  const backendCounters = new BackendCounters(0, 1)
  backendCounters.add(1, BEGUN, 1)
  const [first, second] = [createBackendCounters(1, 4), createBackendCounters(1, 4)]
  backendCounters.use(first)
  backendCounters.add(1, BEGUN, 1)
  backendCounters.use(undefined)
  backendCounters.add(1, BEGUN, 1)
  backendCounters.use(second)
  backendCounters.add(2, BEGUN, 1)
  expect(readBackendTotals(first, 1)).toEqual(new Map([[1, { ...nothing, begun: 1 }]]))
  expect(readBackendTotals(second, 1)).toEqual(new Map([[2, { ...nothing, begun: 1 }]]))
})

test('backends beyond the room are not counted, and others go on', () => {
  const memory = createBackendCounters(1, 2)
  const backendCounters = new BackendCounters(0, 1)
  backendCounters.use(memory)
  for (const serial of [1, 2, 3, 1, 3]) backendCounters.add(serial, BEGUN, 1)
  expect([...readBackendTotals(memory, 1)]).toEqual([
    [1, { ...nothing, begun: 2 }],
    [2, { ...nothing, begun: 1 }],
  ])
})
