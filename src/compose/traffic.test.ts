import { expect, test } from 'vitest'
import { turnsDuring } from '../../test/support/turns.ts'
import type { TrafficAnswer } from '../serve/control/traffic.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { KernelError } from '../lib/errors.ts'
import { silentLogger } from '../lib/log.ts'
import { nextTurn } from '../lib/next-turn.ts'
import { NO_TRAFFIC } from '../traffic/traffic-counts.ts'
import type { ServicePortView } from '../model/types.ts'
import type { Counted, TrafficCounter } from '../modes/contract.ts'
import { Traffic } from './traffic.ts'

const view = {
  name: 'default/web',
  frontends: [
    { address: '10.0.0.1', protocol: 'TCP', port: 80 },
    { address: undefined, protocol: 'TCP', port: 30080 },
  ],
} as unknown as ServicePortView

function pair(address: string, port: number): Counted['pairs'][number] {
  const backend = { address: '10.1.0.1', port: 8080 }
  const id = `${address} ${port}`
  return {
    ...NO_TRAFFIC,
    id,
    protocol: 'TCP',
    frontend: { address, port },
    backend,
    begun: 2,
    sentPackets: 3,
    sentBytes: 300,
  }
}

function open() {
  const clock = new ManualClock()
  const events: string[] = []
  const counter: TrafficCounter = {
    read: async () => ({
      pairs: [pair('10.0.0.1', 80), pair('192.168.0.7', 30080), pair('172.16.0.1', 80)],
      refusals: [{ protocol: 'TCP', address: undefined, port: 30080, packets: 4 }],
      total: { ...NO_TRAFFIC, begun: 7, sentPackets: 10, sentBytes: 1000 },
    }),
    close: () => void events.push('closed'),
  }
  const traffic = new Traffic({
    families: [{ family: 4, views: () => [view] }],
    about: () => ({ mode: 'nftables', nodeName: 'n', ejected: ['10.1.0.1:8080'] }),
    open: () => (events.push('opened'), counter),
    clock,
    log: silentLogger,
  })
  const ask = (signal: AbortSignal) =>
    traffic.question.answer(new URLSearchParams(), { signal }) as Promise<TrafficAnswer>
  return { clock, events, traffic, ask }
}

test('counts are given by service, frontend and backend; the rest is others', async () => {
  const { ask } = open()
  const { rows, other } = await ask(new AbortController().signal)
  expect(rows).toMatchObject([
    {
      service: 'default/web',
      frontend: 'tcp 10.0.0.1:80',
      backend: '10.1.0.1:8080',
      begun: 2,
      sentBytes: 300,
      isEjected: true,
    },
    { service: 'default/web', frontend: 'tcp 192.168.0.7:30080', begun: 2 },
    { service: 'default/web', frontend: 'tcp *:30080', refused: 4, begun: 0 },
  ])
  expect(other).toMatchObject({ begun: 1, sentPackets: 1, sentBytes: 100 })
})

test('the kernel counts while there is a client, and no longer', async () => {
  const { events, traffic, ask } = open()
  const [first, second] = [new AbortController(), new AbortController()]
  await ask(first.signal)
  await ask(second.signal)
  await ask(first.signal)
  first.abort()
  expect([events, traffic.isCounting]).toEqual([['opened'], true])
  second.abort()
  expect([events, traffic.isCounting]).toEqual([['opened', 'closed'], false])
})

test('a client who stays and does not ask does not count any more', async () => {
  const { clock, events, ask } = open()
  const { signal } = new AbortController()
  await ask(signal)
  await clock.advance(14_000)
  await ask(signal)
  await clock.advance(14_000)
  expect(events).toEqual(['opened'])
  await clock.advance(2000)
  expect(events).toEqual(['opened', 'closed'])
  await ask(signal)
  expect(events).toEqual(['opened', 'closed', 'opened'])
})

test('it ends with the proxy, and where the mode cannot count, the answer says so', async () => {
  const { events, traffic, ask } = open()
  await ask(new AbortController().signal)
  traffic.close()
  expect(events).toEqual(['opened', 'closed'])
  const none = new Traffic({
    families: [],
    about: () => ({ mode: 'ipvs', nodeName: 'n', ejected: [] }),
    open: undefined,
    clock: new ManualClock(),
    log: silentLogger,
  })
  const client = { signal: new AbortController().signal }
  expect(() => none.question.answer(new URLSearchParams(), client)).toThrow(/Cannot count: the ipvs mode/)
})

test('what the kernel has forgotten is not given as traffic of others', async () => {
  let pairs = [pair('10.0.0.1', 80)]
  const traffic = new Traffic({
    families: [{ family: 4, views: () => [view] }],
    about: () => ({ mode: 'nftables', nodeName: 'n', ejected: [] }),
    open: () => ({
      read: async () => ({ pairs, refusals: [], total: { ...NO_TRAFFIC, begun: 2, sentPackets: 3, sentBytes: 300 } }),
      close: () => {},
    }),
    clock: new ManualClock(),
    log: silentLogger,
  })
  traffic.keep(true)
  const other = async () => (await traffic.read())?.answer.other
  expect(await other()).toEqual(NO_TRAFFIC)
  // The kernel has a clock for new connections, and one for packets.
  pairs = [{ ...pairs[0]!, begun: 0 }]
  expect(await other()).toEqual(NO_TRAFFIC)
  pairs = []
  expect(await other()).toEqual(NO_TRAFFIC)
  traffic.keep(false)
  expect([await traffic.read(), traffic.isCounting]).toEqual([undefined, false])
})

test('it starts again when another program has removed what counts', async () => {
  let opened = 0
  const traffic = new Traffic({
    families: [{ family: 4, views: () => [view] }],
    about: () => ({ mode: 'nftables', nodeName: 'n', ejected: [] }),
    open: () => {
      const nth = ++opened
      return {
        async read() {
          if (nth === 1) throw new KernelError('read set sent', 'ENOENT')
          return { pairs: [], refusals: [], total: NO_TRAFFIC }
        },
        close() {
          if (nth === 1) throw new KernelError('delete table', 'ENOENT')
        },
      }
    },
    clock: new ManualClock(),
    log: silentLogger,
  })
  traffic.keep(true)
  expect([(await traffic.read())?.answer.rows, opened]).toEqual([[], 2])
})

test('where the proxy carries connections itself, it counts by backend, and the kernel by frontend', async () => {
  const carried = {
    service: 'default/web',
    protocol: 'TCP',
    backend: { address: '10.1.0.7', port: 8080 },
    begun: 3,
    sentPackets: 0,
    sentBytes: 30,
    receivedPackets: 0,
    receivedBytes: 300,
    isResting: true,
  } as const
  // Two listeners of one frontend.
  const listeners = [
    pair('10.0.0.1', 80),
    { ...pair('10.0.0.1', 80), id: 'b', backend: { address: '172.16.0.1', port: 40_001 } },
  ]
  const total = { ...NO_TRAFFIC, begun: 4, sentPackets: 6, sentBytes: 600 }
  const traffic = new Traffic({
    families: [{ family: 4, views: () => [view] }],
    about: () => ({ mode: 'userspace', nodeName: 'n', ejected: [] }),
    open: () => ({
      read: async () => ({ pairs: listeners, refusals: [], total, carried: [carried] }),
      close: () => {},
    }),
    clock: new ManualClock(),
    log: silentLogger,
  })
  const answer = await traffic.question.answer(new URLSearchParams(), { signal: new AbortController().signal })
  expect(answer).toMatchObject({
    rows: [{ service: 'default/web', frontend: 'tcp 10.0.0.1:80', backend: undefined, begun: 4, sentBytes: 600 }],
    carried: [
      { service: 'default/web', protocol: 'tcp', backend: '10.1.0.7:8080', receivedBytes: 300, isEjected: true },
    ],
    other: { begun: 0 },
  })
})

test('who asks while it is read gets the same reading', async () => {
  let reads = 0
  const traffic = new Traffic({
    families: [{ family: 4, views: () => [view] }],
    about: () => ({ mode: 'nftables', nodeName: 'n', ejected: [] }),
    open: () => ({
      read: async () => (reads++, { pairs: [], refusals: [], total: NO_TRAFFIC }),
      close: () => {},
    }),
    clock: new ManualClock(),
    log: silentLogger,
  })
  traffic.keep(true)
  const [first, second] = await Promise.all([traffic.read(), traffic.read()])
  expect([reads, first === second]).toEqual([1, true])
  await traffic.read()
  expect(reads).toBe(2)
})

test('a reading during which counting ends gives nothing', async () => {
  const opened = { closed: false }
  const traffic = new Traffic({
    families: [{ family: 4, views: () => [view] }],
    about: () => ({ mode: 'nftables', nodeName: 'n', ejected: [] }),
    open: () => ({
      async read() {
        await nextTurn()
        if (opened.closed) throw new Error('counting has ended')
        return { pairs: [], refusals: [], total: NO_TRAFFIC }
      },
      close: () => void (opened.closed = true),
    }),
    clock: new ManualClock(),
    log: silentLogger,
  })
  traffic.keep(true)
  const reading = traffic.read()
  traffic.keep(false)
  expect(await reading).toBeUndefined()
})

test('other work gets its turns while thousands of pairs are read', async () => {
  const pairs = Array.from({ length: 8192 }, (_, i) => ({ ...pair('10.0.0.1', 80), id: String(i) }))
  const traffic = new Traffic({
    families: [{ family: 4, views: () => [view] }],
    about: () => ({ mode: 'nftables', nodeName: 'n', ejected: [] }),
    open: () => ({ read: async () => ({ pairs, refusals: [], total: NO_TRAFFIC }), close: () => {} }),
    clock: new ManualClock(),
    log: silentLogger,
  })
  traffic.keep(true)
  const { result: reading, turns } = await turnsDuring(() => traffic.read())
  expect(reading?.answer.rows).toHaveLength(8192)
  expect(turns).toBeGreaterThanOrEqual(8)
})
