import { expect, test } from 'vitest'
import { BEGUN, createTally, readTally, SENT_BYTES, ThreadTally } from './tally.ts'

const nothing = { begun: 0, sentPackets: 0, sentBytes: 0, receivedPackets: 0, receivedBytes: 0 }

test('threads count on their own, and the sum is told by backend', () => {
  const memory = createTally(2, 4)
  const threads = [new ThreadTally(0, 2), new ThreadTally(1, 2)]
  for (const thread of threads) thread.use(memory)
  threads[0]!.add(7, BEGUN, 1)
  threads[0]!.add(7, SENT_BYTES, 1000)
  threads[1]!.add(9, SENT_BYTES, 5)
  threads[1]!.add(7, SENT_BYTES, 234)
  expect(readTally(memory, 2)).toEqual(
    new Map([
      [7, { ...nothing, begun: 1, sentBytes: 1234 }],
      [9, { ...nothing, sentBytes: 5 }],
    ]),
  )
})

test('nothing is counted without memory, and what comes later is counted anew', () => {
  const tally = new ThreadTally(0, 1)
  tally.add(1, BEGUN, 1)
  const [first, second] = [createTally(1, 4), createTally(1, 4)]
  tally.use(first)
  tally.add(1, BEGUN, 1)
  tally.use(undefined)
  tally.add(1, BEGUN, 1)
  tally.use(second)
  tally.add(2, BEGUN, 1)
  expect(readTally(first, 1)).toEqual(new Map([[1, { ...nothing, begun: 1 }]]))
  expect(readTally(second, 1)).toEqual(new Map([[2, { ...nothing, begun: 1 }]]))
})

test('backends beyond the room are not counted, and others go on', () => {
  const memory = createTally(1, 2)
  const tally = new ThreadTally(0, 1)
  tally.use(memory)
  for (const serial of [1, 2, 3, 1, 3]) tally.add(serial, BEGUN, 1)
  expect([...readTally(memory, 1)]).toEqual([
    [1, { ...nothing, begun: 2 }],
    [2, { ...nothing, begun: 1 }],
  ])
})
