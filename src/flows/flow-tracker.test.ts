import { expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import type { EndEvent } from '../conntrack/watch-ends.ts'
import type { FlowRecord } from './flow-record.ts'
import { FlowTracker, MOST_A_SECOND } from './flow-tracker.ts'

const TCP = 6
const UDP = 17
const CLOSE = 8
const TIME_WAIT = 7

function event(kind: EndEvent['kind'], given: Partial<EndEvent> = {}): EndEvent {
  return {
    kind,
    family: 4,
    protocol: TCP,
    original: { src: '10.244.0.7', sport: 40000, dst: '10.96.0.1', dport: 80 },
    reply: { src: '10.244.1.3', sport: 8080, dst: '10.244.0.7', dport: 40000 },
    id: 1,
    isAnswered: kind !== 'begun',
    tcpState: undefined,
    counts: undefined,
    startMs: undefined,
    stopMs: undefined,
    ...given,
  }
}

function open(given: Partial<ConstructorParameters<typeof FlowTracker>[0]> = {}) {
  const clock = new ManualClock()
  const records: FlowRecord[] = []
  const tracker = new FlowTracker({
    clock,
    serviceAt: (protocol, address, port) =>
      `${protocol} ${address} ${port}` === 'TCP 10.96.0.1 80' || protocol === 'UDP' ? 'default/web:http' : undefined,
    isWanted: () => true,
    onRecord: (record) => records.push(record),
    counts: undefined,
    isAnswered: () => true,
    knowsBackends: true,
    ...given,
  })
  return { clock, records, tracker }
}

test('a connection begins and closes, with what was counted', async () => {
  const counts = { sentBytes: 400, sentPackets: 5, receivedBytes: 900, receivedPackets: 4 }
  const { clock, records, tracker } = open({ counts: () => counts })
  tracker.add(event('begun'))
  await clock.advance(25)
  tracker.add(event('closing', { tcpState: TIME_WAIT }))
  const common = {
    service: 'default/web:http',
    protocol: 'TCP',
    client: { ip: '10.244.0.7', port: 40000 },
    frontend: { ip: '10.96.0.1', port: 80 },
    backend: { ip: '10.244.1.3', port: 8080 },
  }
  expect(records).toMatchObject([
    { ...common, event: 'begun' },
    { ...common, event: 'ended', end: 'closed', durationMs: 25, ...counts },
  ])
})

test.each([
  ['reset', event('closing', { tcpState: CLOSE })],
  ['refused by the backend', event('gone', { tcpState: CLOSE, isAnswered: false })],
  ['no answer', event('gone', { tcpState: 2, isAnswered: false })],
  ['no answer', event('gone', { protocol: UDP, isAnswered: false })],
  ['expired', event('gone', { protocol: UDP })],
  ['expired', event('gone', { tcpState: 3 })],
] as const)('it ends: %s', (end, last) => {
  const { records, tracker } = open()
  tracker.add(event('begun', { protocol: last.protocol }))
  tracker.add(last)
  expect(records.at(-1)).toMatchObject({ event: 'ended', end })
})

test('the end is reported once: the kernel forgets a connection some time after it closed', () => {
  const { records, tracker } = open()
  tracker.add(event('begun'))
  tracker.add(event('closing', { tcpState: CLOSE }))
  tracker.add(event('gone', { tcpState: CLOSE }))
  expect(records.map(({ event: what }) => what)).toEqual(['begun', 'ended'])
})

test('of a connection that began before, the end is reported without a duration', () => {
  const { records, tracker } = open()
  tracker.add(event('closing', { tcpState: TIME_WAIT }))
  expect(records).toHaveLength(1)
  expect(records[0]!.durationMs).toBeUndefined()
})

test('the times of the kernel outrank those of the reader', () => {
  const { records, tracker } = open()
  tracker.add(event('begun', { protocol: UDP }))
  tracker.add(event('gone', { protocol: UDP, startMs: 1000, stopMs: 1012.34 }))
  expect(records.at(-1)!.durationMs).toBe(12.3)
})

test('what is not translated, no service, or not looked at, is left alone', () => {
  const { records, tracker } = open({ isWanted: () => false })
  tracker.add(event('begun'))
  const other = open()
  const { original } = event('begun')
  other.tracker.add(event('begun', { reply: { src: original.dst, sport: 80, dst: original.src, dport: 40000 } }))
  other.tracker.add(event('begun', { protocol: 1 }))
  other.tracker.add(event('begun', { original: { ...original, dport: 81 } }))
  other.tracker.tick()
  expect([...records, ...other.records]).toEqual([])
})

test('a service of which the proxy has just heard is looked up once more', () => {
  let isKnown = false
  const { records, tracker } = open({ serviceAt: () => (isKnown ? 'default/new' : undefined) })
  tracker.add(event('begun'))
  tracker.add(event('closing', { tcpState: TIME_WAIT }))
  expect(records).toEqual([])
  isKnown = true
  tracker.tick()
  expect(records.map(({ event: what }) => what)).toEqual(['begun', 'ended'])
})

test('beyond the limit connections are counted, and neither their beginning nor their end is reported', () => {
  const { records, tracker } = open()
  for (let id = 1; id <= MOST_A_SECOND + 3; id++) tracker.add(event('begun', { id }))
  for (let id = 1; id <= MOST_A_SECOND + 3; id++) tracker.add(event('closing', { id, tcpState: TIME_WAIT }))
  expect(records).toHaveLength(2 * MOST_A_SECOND)
  expect([tracker.takeLeftOut(), tracker.takeLeftOut()]).toEqual([3, 0])
  tracker.tick()
  tracker.add(event('begun', { id: 1 }))
  expect(records).toHaveLength(2 * MOST_A_SECOND + 1)
})

test('a connection without an answer is reported after some seconds, once', async () => {
  const { clock, records, tracker } = open({ isAnswered: ({ id }) => (id === 3 ? undefined : id !== 1) })
  for (const id of [1, 2, 3, 4]) tracker.add(event('begun', { id }))
  tracker.add(event('closing', { id: 4, tcpState: TIME_WAIT }))
  await clock.advance(2000)
  tracker.tick()
  expect(records.some(({ event: what }) => what === 'unanswered')).toBe(false)
  await clock.advance(2000)
  tracker.tick()
  tracker.tick()
  expect(records.filter(({ event: what }) => what === 'unanswered')).toMatchObject([{ durationMs: 4000 }])
})

test('where the proxy carries connections, the kernel knows no backends', () => {
  const { records, tracker } = open({ knowsBackends: false })
  tracker.add(event('begun'))
  expect(records[0]!.backend).toBeUndefined()
})
