import { expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { silentLogger } from '../lib/log.ts'
import { FlowQueue, SEND_EVERY_MS } from './flow-queue.ts'
import type { FlowRecord } from './flow-record.ts'

const record = (timeMs: number) => ({ timeMs, event: 'ended', service: 'default/web' }) as FlowRecord

function open() {
  const clock = new ManualClock()
  const sent: { times: number[]; leftOut: number }[] = []
  const state = { fails: false }
  const sink = {
    name: 'test',
    send: (records: readonly FlowRecord[], leftOut: number) => {
      if (state.fails) return Promise.reject(new Error('full'))
      sent.push({ times: records.map(({ timeMs }) => timeMs), leftOut })
      return Promise.resolve()
    },
  }
  const queue = new FlowQueue({ sink, clock, log: silentLogger, withNames: (each) => each })
  return { clock, sent, state, queue }
}

test('what has come is sent each second, with the number of what has no record', async () => {
  const { clock, sent, queue } = open()
  queue.add(record(1))
  queue.add(record(2))
  queue.leftOut(5)
  await clock.advance(SEND_EVERY_MS)
  await clock.advance(SEND_EVERY_MS)
  expect(sent).toEqual([{ times: [1, 2], leftOut: 5 }])
})

test('what cannot be sent waits; the oldest is dropped when there is too much, and counted', async () => {
  const { clock, sent, state, queue } = open()
  state.fails = true
  for (let i = 0; i < 5003; i++) queue.add(record(i))
  await clock.advance(SEND_EVERY_MS)
  for (let i = 5003; i < 5005; i++) queue.add(record(i))
  state.fails = false
  await clock.advance(10 * SEND_EVERY_MS)
  const times = sent.flatMap((each) => each.times)
  expect([times[0], times.at(-1), times.length]).toEqual([5, 5004, 5000])
  expect(sent.reduce((sum, { leftOut }) => sum + leftOut, 0)).toBe(5)
})

test('at the end what is there is sent', async () => {
  const { sent, queue } = open()
  queue.add(record(1))
  await queue.close()
  expect(sent).toEqual([{ times: [1], leftOut: 0 }])
})
