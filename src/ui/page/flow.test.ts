import { expect, test } from 'vitest'
import type { OutcomeRow, TrafficReport } from '../protocol.ts'
import { addReport, failedOf, NO_FLOW, secondOf } from './flow.ts'

const row: OutcomeRow = {
  service: 'default/web:http',
  backend: '10.0.0.1:80',
  client: 'outside',
  answered: 0,
  refused: 0,
  timedOut: 0,
  cut: 0,
  retried: 0,
}
const report = (...outcomes: OutcomeRow[]): TrafficReport => ({ nodes: [], outcomes })

test('failures count at the endpoint, the service and the client; what reached no endpoint counts at the service', () => {
  const first = addReport(NO_FLOW, report({ ...row, refused: 4 }, { ...row, backend: null, timedOut: 2 }), null, 1000)
  const { now, total } = addReport(first, report({ ...row, refused: 2, answered: 10 }), null, 2000)
  expect(total.pairs.get('default/web:http|10.0.0.1:80')).toMatchObject({ refused: 6, answered: 10, timedOut: 0 })
  expect(total.backends.get('10.0.0.1:80')).toMatchObject({ refused: 6 })
  expect(total.nowhere.get('default/web:http')).toMatchObject({ timedOut: 2, refused: 0 })
  expect(failedOf(total.services.get('default/web:http')!)).toBe(8)
  expect(total.clients.get('outside')).toMatchObject({ refused: 6, timedOut: 2 })
  // Over two seconds.
  expect(now.backends.get('10.0.0.1:80')?.refused).toBe(3)
})

test('what is long ago is no rate any more, and remains in the total and in the points', () => {
  let flow = addReport(NO_FLOW, report({ ...row, refused: 1 }), null, 0)
  for (let i = 1; i <= 5; i++) flow = addReport(flow, report(), null, i * 1000)
  expect(flow.now.services.size).toBe(0)
  expect(flow.total.services.get('default/web:http')?.refused).toBe(1)
  expect(flow.points.map((point) => secondOf(point, 'default/web').connections)).toEqual([1, 0, 0, 0, 0, 0])
  for (let i = 0; i < 400; i++) flow = addReport(flow, report(), null, i)
  expect(flow.points).toHaveLength(300)
})

test('on a node, what the rules turned away are the failures; UDP counts everywhere', () => {
  const rate = { backend: null, connections: 3, packets: 9, bytes: 1, ejected: false }
  const rows = [
    { ...rate, service: 'default/web', frontend: 'tcp 10.0.0.1:80', refused: 1, dropped: 2 },
    { ...rate, service: 'default/dns', frontend: 'udp 10.0.0.2:53', refused: 0, dropped: 0 },
  ]
  const nodes = [{ node: 'n', error: null, overMs: 1000, rows }]
  const [point] = addReport(NO_FLOW, { nodes, outcomes: [] }, null, 0).points
  expect(secondOf(point!, 'default/web')).toMatchObject({ connections: 6, refused: 1, timedOut: 2 })
  expect(secondOf(point!, '').connections).toBe(9)
  const [told] = addReport(NO_FLOW, { nodes, outcomes: [{ ...row, answered: 7 }] }, null, 0).points
  expect(secondOf(told!, '').connections).toBe(10)
})
