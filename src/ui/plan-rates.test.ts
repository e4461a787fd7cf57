import { expect, test } from 'vitest'
import type { TrafficAnswer, TrafficRow } from '../serve/control/traffic.ts'
import { sumRates } from './page/rates.ts'
import { planRates } from './plan-rates.ts'

const row: TrafficRow = {
  service: 'default/web',
  frontend: 'tcp 10.0.0.1:80',
  backend: '10.1.0.1:8080',
  begun: 10,
  sentPackets: 100,
  sentBytes: 1000,
  receivedPackets: 50,
  receivedBytes: 5000,
  refused: 0,
  isEjected: false,
}
const closed: TrafficRow = { ...row, backend: undefined, begun: 0, sentPackets: 0, receivedPackets: 0, refused: 3 }

function answer(nowMs: number, rows: readonly TrafficRow[], sinceMs = 0): TrafficAnswer {
  const other = { begun: 0, sentPackets: 0, sentBytes: 0, receivedPackets: 0, receivedBytes: 0 }
  return { nowMs, sinceMs, mode: 'nftables', nodeName: 'n', rows, other }
}
const never = () => false

test('rates are what moved, per second; what did not move is left out', () => {
  const later = { ...row, begun: 14, sentPackets: 110, sentBytes: 1500, receivedPackets: 60, receivedBytes: 6000 }
  const quiet = { ...row, backend: '10.1.0.2:8080' }
  expect(planRates(answer(1000, [row, quiet]), answer(3000, [later, quiet]), never)).toEqual({
    error: null,
    overMs: 2000,
    rows: [
      {
        service: 'default/web',
        frontend: 'tcp 10.0.0.1:80',
        backend: '10.1.0.1:8080',
        connections: 2,
        packets: 10,
        bytes: 750,
        refused: 0,
        dropped: 0,
        ejected: false,
      },
    ],
  })
})

test('a pair that is new counts from nothing, and so does one that the kernel forgot', () => {
  const { rows } = planRates(answer(1000, []), answer(2000, [row]), never)
  expect(rows).toMatchObject([{ connections: 10 }])
  const forgotten = { ...row, begun: 2, sentPackets: 5, receivedPackets: 5 }
  expect(planRates(answer(1000, [row]), answer(2000, [forgotten]), never).rows).toMatchObject([
    { connections: 2, packets: 10 },
  ])
})

test('what is not served is refused, or dropped where the frontend says nothing', () => {
  const before = answer(1000, [])
  expect(planRates(before, answer(2000, [closed]), never).rows).toMatchObject([
    { backend: null, refused: 3, dropped: 0 },
  ])
  expect(planRates(before, answer(2000, [closed]), () => true).rows).toMatchObject([{ refused: 0, dropped: 3 }])
})

test('the first answer, and one of counters that started again, has no rates', () => {
  expect(planRates(undefined, answer(1000, [row]), never)).toMatchObject({ overMs: 0, rows: [] })
  expect(planRates(answer(1000, [row]), answer(2000, [row], 1500), never)).toMatchObject({ overMs: 0, rows: [] })
})

test('what the proxy itself carries is reported by backend, and once more by frontend', () => {
  const { frontend: _, refused: __, ...counts } = row
  const carried = { ...counts, backend: '10.1.0.1:8080', protocol: 'tcp', sentPackets: 0, receivedPackets: 0 }
  const before = { ...answer(1000, []), carried: [{ ...carried, begun: 4, receivedBytes: 4000 }] }
  const after = { ...answer(2000, [{ ...row, backend: undefined }]), carried: [carried] }
  const { rows } = planRates(before, after, never)
  expect(rows).toMatchObject([
    { frontend: 'tcp 10.0.0.1:80', backend: null, connections: 10 },
    { frontend: null, backend: '10.1.0.1:8080', connections: 6, packets: 0, bytes: 1000 },
  ])
  const sums = sumRates({ nodes: [{ node: 'n', error: null, overMs: 1000, rows }], outcomes: [] })
  expect(sums.ports.get('default/web')?.connections).toBe(10)
  expect(sums.pairs.get('default/web|10.1.0.1:8080')?.connections).toBe(6)
})
