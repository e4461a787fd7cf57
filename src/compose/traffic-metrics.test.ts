import { expect, test } from 'vitest'
import type { TrafficRow } from '../serve/control/traffic.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { silentLogger } from '../lib/log.ts'
import { NO_TRAFFIC } from '../traffic/traffic-counts.ts'
import { createMetrics } from '../metrics/metrics.ts'
import { TrafficMetrics } from './traffic-metrics.ts'
import type { TrafficReading } from './traffic.ts'

const build = { major: '', minor: '', version: '', commit: '', treeState: '', buildDate: '' }

function row(service: string, begun: number): TrafficRow {
  return {
    ...NO_TRAFFIC,
    service,
    frontend: 'tcp 10.0.0.1:80',
    backend: '10.1.0.1:80',
    begun,
    sentPackets: 2 * begun,
    sentBytes: 100 * begun,
    refused: 0,
    isEjected: false,
  }
}

function open() {
  const clock = new ManualClock()
  const metrics = createMetrics({ shown: [], build })
  const kept: boolean[] = []
  const state = { rows: [] as TrafficRow[], other: NO_TRAFFIC, services: ['a/a', 'a/b', 'a/c'], reads: 0 }
  const wishes: Record<string, boolean> = {}
  const reading = (): TrafficReading => ({
    answer: { nowMs: 0, sinceMs: 1, mode: 'nftables', nodeName: 'n', rows: state.rows, other: state.other },
    ids: state.rows.map(({ service }) => service),
  })
  const shown = new TrafficMetrics({
    traffic: { keep: (isKept) => void kept.push(isKept), read: async () => (state.reads++, reading()) },
    servicePorts: () => state.services.map((name) => [name, wishes[name]] as const),
    metrics,
    clock,
    log: silentLogger,
  })
  const page = async () => Buffer.concat(await metrics.page()).toString()
  const lines = async () => {
    await clock.advance(2000)
    return (await page()).match(/^kubeproxyts_traffic_connections_total.*$/gm) ?? []
  }
  return { clock, page, kept, state, wishes, shown, lines }
}

test('is off unless asked for, and then nothing counts', async () => {
  const { lines, state, kept } = open()
  expect(await lines()).toEqual([])
  expect([state.reads, kept]).toEqual([0, []])
})

test('so many service ports have a label of their own; the rest is other', async () => {
  const { lines, state, shown, page } = open()
  shown.show(2)
  state.rows = [row('a/a', 1), row('a/b', 2), row('a/c', 4)]
  state.other = { ...NO_TRAFFIC, begun: 8 }
  expect(await lines()).toEqual([
    'kubeproxyts_traffic_connections_total{service_port="a/a"} 1',
    'kubeproxyts_traffic_connections_total{service_port="a/b"} 2',
    'kubeproxyts_traffic_connections_total{service_port="other"} 12',
  ])
  expect(await page()).toContain('kubeproxyts_traffic_bytes_total{direction="sent",service_port="a/b"} 200')
})

test('counters only grow: also when the kernel has forgotten a pair and starts again', async () => {
  const { lines, state, shown } = open()
  shown.show(2)
  state.rows = [row('a/a', 5)]
  await lines()
  state.rows = []
  expect(await lines()).toEqual(['kubeproxyts_traffic_connections_total{service_port="a/a"} 5'])
  state.rows = [row('a/a', 3)]
  expect(await lines()).toEqual(['kubeproxyts_traffic_connections_total{service_port="a/a"} 8'])
})

test('a deleted service port makes room for another', async () => {
  const { lines, state, shown } = open()
  shown.show(1)
  state.rows = [row('a/a', 1)]
  await lines()
  state.services = ['a/b']
  state.rows = [row('a/b', 1)]
  expect(await lines()).toEqual(['kubeproxyts_traffic_connections_total{service_port="a/b"} 1'])
})

test('is read without a page, too, before the kernel forgets; and pages that follow at once share a reading', async () => {
  const { clock, page, state, shown } = open()
  shown.show(1)
  await clock.advance(60_000)
  expect(state.reads).toBe(1)
  await page()
  await page()
  expect(state.reads).toBe(1)
  await clock.advance(1000)
  await Promise.all([page(), page()])
  expect(state.reads).toBe(2)
})

test('switched off, it is gone, and nothing counts', async () => {
  const { lines, state, shown, kept } = open()
  shown.show(3)
  state.rows = [row('a/a', 1)]
  expect(await lines()).toHaveLength(1)
  shown.show(0)
  expect([await lines(), kept.at(-1)]).toEqual([[], false])
})

test('a Service that asks for it comes first, however late; one that refuses never has a label', async () => {
  const { lines, state, wishes, shown } = open()
  shown.show(2)
  Object.assign(wishes, { 'a/c': true, 'a/b': false })
  state.services.push('a/d', 'a/e')
  state.rows = [row('a/a', 1), row('a/b', 2), row('a/d', 4), row('a/c', 8)]
  expect(await lines()).toEqual([
    'kubeproxyts_traffic_connections_total{service_port="a/a"} 1',
    'kubeproxyts_traffic_connections_total{service_port="a/c"} 8',
    'kubeproxyts_traffic_connections_total{service_port="other"} 2',
  ])
  // There are never more than two: of those that ask, the first have them.
  Object.assign(wishes, { 'a/d': true, 'a/e': true })
  state.rows = [row('a/a', 2), row('a/b', 2), row('a/d', 5), row('a/c', 8), row('a/e', 16)]
  expect(await lines()).toEqual([
    'kubeproxyts_traffic_connections_total{service_port="a/c"} 8',
    'kubeproxyts_traffic_connections_total{service_port="a/d"} 1',
    'kubeproxyts_traffic_connections_total{service_port="other"} 18',
  ])
  wishes['a/d'] = false
  expect(await lines()).toEqual([
    'kubeproxyts_traffic_connections_total{service_port="a/c"} 8',
    'kubeproxyts_traffic_connections_total{service_port="other"} 18',
  ])
})
