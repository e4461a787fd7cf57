import { expect, test } from 'vitest'
import { ManualClock } from '../lib/clock.ts'
import { KernelError } from '../lib/errors.ts'
import { silentLogger } from '../lib/log.ts'
import type { ServicePortView } from '../model/types.ts'
import type { Counted, TrafficCounter } from '../modes/contract.ts'
import { Traffic } from './traffic.ts'

const nothing = { packets: 0, bytes: 0 }
const view = {
  name: 'default/web',
  frontends: [
    { address: '10.0.0.1', protocol: 'TCP', port: 80 },
    { address: undefined, protocol: 'TCP', port: 30080 },
  ],
} as unknown as ServicePortView

function pair(address: string, port: number): Counted['pairs'][number] {
  const backend = { address: '10.1.0.1', port: 8080 }
  return {
    protocol: 'TCP',
    frontend: { address, port },
    backend,
    begun: 2,
    sent: { packets: 3, bytes: 300 },
    received: nothing,
  }
}

function open() {
  const clock = new ManualClock()
  const told: string[] = []
  const counter: TrafficCounter = {
    read: () => ({
      pairs: [pair('10.0.0.1', 80), pair('192.168.0.7', 30080), pair('172.16.0.1', 80)],
      refusals: [{ protocol: 'TCP', address: undefined, port: 30080, packets: 4 }],
      total: { begun: 7, sent: { packets: 10, bytes: 1000 }, received: nothing },
    }),
    close: () => void told.push('closed'),
  }
  const traffic = new Traffic({
    families: [{ family: 4, views: () => [view] }],
    about: () => ({ mode: 'nftables', nodeName: 'n', ejected: ['10.1.0.1:8080'] }),
    open: () => (told.push('opened'), counter),
    clock,
    log: silentLogger,
  })
  const ask = (signal: AbortSignal) => traffic.question.answer(new URLSearchParams(), { signal })
  return { clock, told, traffic, ask }
}

test('counts are told by service, frontend and backend; the rest is others', () => {
  const { ask } = open()
  const { rows, other } = ask(new AbortController().signal) as { rows: unknown[]; other: unknown }
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

test('the kernel counts while there is an asker, and no longer', () => {
  const { told, traffic, ask } = open()
  const [first, second] = [new AbortController(), new AbortController()]
  ask(first.signal)
  ask(second.signal)
  ask(first.signal)
  first.abort()
  expect([told, traffic.isCounting]).toEqual([['opened'], true])
  second.abort()
  expect([told, traffic.isCounting]).toEqual([['opened', 'closed'], false])
})

test('an asker who stays and does not ask does not look any more', async () => {
  const { clock, told, ask } = open()
  const { signal } = new AbortController()
  ask(signal)
  await clock.advance(14_000)
  ask(signal)
  await clock.advance(14_000)
  expect(told).toEqual(['opened'])
  await clock.advance(2000)
  expect(told).toEqual(['opened', 'closed'])
  ask(signal)
  expect(told).toEqual(['opened', 'closed', 'opened'])
})

test('it ends with the proxy, and where the mode cannot tell, that is said', () => {
  const { told, traffic, ask } = open()
  ask(new AbortController().signal)
  traffic.close()
  expect(told).toEqual(['opened', 'closed'])
  const none = new Traffic({
    families: [],
    about: () => ({ mode: 'ipvs', nodeName: 'n', ejected: [] }),
    open: undefined,
    clock: new ManualClock(),
    log: silentLogger,
  })
  const asker = { signal: new AbortController().signal }
  expect(() => none.question.answer(new URLSearchParams(), asker)).toThrow(/Cannot count: the ipvs mode/)
})

test('what the kernel has forgotten is not told as traffic of others', () => {
  let pairs = [pair('10.0.0.1', 80)]
  const traffic = new Traffic({
    families: [{ family: 4, views: () => [view] }],
    about: () => ({ mode: 'nftables', nodeName: 'n', ejected: [] }),
    open: () => ({
      read: () => ({ pairs, refusals: [], total: { begun: 2, sent: { packets: 3, bytes: 300 }, received: nothing } }),
      close: () => {},
    }),
    clock: new ManualClock(),
    log: silentLogger,
  })
  traffic.keep(true)
  expect(traffic.read()?.other.sentPackets).toBe(0)
  pairs = []
  expect(traffic.read()?.other.sentPackets).toBe(0)
  traffic.keep(false)
  expect([traffic.read(), traffic.isCounting]).toEqual([undefined, false])
})

test('it begins anew when another program has removed what counts', () => {
  let opened = 0
  const traffic = new Traffic({
    families: [{ family: 4, views: () => [view] }],
    about: () => ({ mode: 'nftables', nodeName: 'n', ejected: [] }),
    open: () => {
      const nth = ++opened
      return {
        read() {
          if (nth === 1) throw new KernelError('read set sent', 'ENOENT')
          return { pairs: [], refusals: [], total: { begun: 0, sent: nothing, received: nothing } }
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
  expect([traffic.read()?.rows, opened]).toEqual([[], 2])
})

test('where the proxy carries connections itself, it tells the backends, and the kernel the frontends', () => {
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
  // Two doors of one frontend.
  const doors = [pair('10.0.0.1', 80), { ...pair('10.0.0.1', 80), backend: { address: '172.16.0.1', port: 40_001 } }]
  const total = { begun: 4, sent: { packets: 6, bytes: 600 }, received: nothing }
  const traffic = new Traffic({
    families: [{ family: 4, views: () => [view] }],
    about: () => ({ mode: 'userspace', nodeName: 'n', ejected: [] }),
    open: () => ({ read: () => ({ pairs: doors, refusals: [], total, carried: [carried] }), close: () => {} }),
    clock: new ManualClock(),
    log: silentLogger,
  })
  const answer = traffic.question.answer(new URLSearchParams(), { signal: new AbortController().signal })
  expect(answer).toMatchObject({
    rows: [{ service: 'default/web', frontend: 'tcp 10.0.0.1:80', backend: undefined, begun: 4, sentBytes: 600 }],
    carried: [
      { service: 'default/web', protocol: 'tcp', backend: '10.1.0.7:8080', receivedBytes: 300, isEjected: true },
    ],
    other: { begun: 0 },
  })
})
