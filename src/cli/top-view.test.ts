import { describe, expect, test } from 'vitest'
import type { TrafficAnswer, TrafficRow } from '../serve/control/traffic.ts'
import { formatNumber, formatTable, planRates, type TableOptions } from './top-view.ts'

const nothing = { begun: 0, sentPackets: 0, sentBytes: 0, receivedPackets: 0, receivedBytes: 0 }

function row(service: string, backend: string | undefined, counts: Partial<TrafficRow> = {}): TrafficRow {
  return { ...nothing, service, frontend: 'tcp 10.0.0.1:80', backend, refused: 0, isEjected: false, ...counts }
}

function answer(nowMs: number, rows: readonly TrafficRow[], sinceMs = 0): TrafficAnswer {
  return { nowMs, sinceMs, mode: 'nftables', nodeName: 'n', rows, other: nothing }
}

const options: TableOptions = { view: 'services', sort: 'bytes', filter: '' }
const before = answer(1000, [row('a', 'x', { begun: 5, sentBytes: 1000 }), row('b', 'y', { sentBytes: 10 })])
const now = answer(3000, [
  row('a', 'x', { begun: 9, sentBytes: 2000, receivedBytes: 400, sentPackets: 8 }),
  row('a', 'z', { begun: 2, isEjected: true }),
  row('b', 'y', { sentBytes: 8010 }),
  row('b', undefined, { refused: 6 }),
])

describe('planRates()', () => {
  test('adds up by service, per second, the largest first', () => {
    expect(planRates(before, now, options)).toEqual([
      { name: 'b', connections: 0, packets: 0, bytes: 4000, refused: 3, ejected: false },
      { name: 'a', connections: 3, packets: 4, bytes: 700, refused: 0, ejected: true },
    ])
  })

  test('says of a service how its endpoints are chosen, where that is not left to chance', () => {
    const chosen = { ...now, balances: { a: 'least-connections' } }
    const rates = planRates(before, chosen, options)
    expect(rates.map(({ name, balance }) => [name, balance])).toEqual([
      ['b', undefined],
      ['a', 'least-connections'],
    ])
    expect(formatTable(rates, options, { columns: 80, rows: 10 })[2]).toMatch(/^a \(least-connections\) /)
    expect(planRates(before, chosen, { ...options, view: 'backends' }).some(({ balance }) => balance)).toBe(false)
  })

  test('shows frontends and backends, filtered and sorted', () => {
    const names = (wish: Partial<TableOptions>) =>
      planRates(before, now, { ...options, ...wish }).map(({ name }) => name)
    expect(names({ view: 'frontends', sort: 'name' })).toEqual(['a tcp 10.0.0.1:80', 'b tcp 10.0.0.1:80'])
    expect(names({ view: 'backends', sort: 'connections' })).toEqual([
      'a tcp 10.0.0.1:80 -> x',
      'a tcp 10.0.0.1:80 -> z',
      'b tcp 10.0.0.1:80 -> y',
    ])
    expect(names({ filter: 'b' })).toEqual(['b'])
  })

  test('tells connections that sockets chose from those of the rules', () => {
    const chosen = (begun: number) => row('a', 'x', { begun, isChosen: true })
    const rates = planRates(
      answer(1000, [row('a', 'x', { begun: 5 }), chosen(7)]),
      answer(2000, [row('a', 'x', { begun: 6 }), chosen(9)]),
      options,
    )
    expect(rates.map(({ connections }) => connections)).toEqual([3])
  })

  test('is never negative: an element was forgotten, or counting started again', () => {
    const restarted = answer(3500, [row('a', 'x', { begun: 1 })], 3000)
    expect(planRates(now, restarted, options)[0]).toMatchObject({ connections: 2 })
    const forgotten = answer(4000, [row('a', 'x', { begun: 3 })])
    expect(planRates(now, forgotten, options)[0]).toMatchObject({ connections: 3 })
  })
})

test('a table fits the terminal', () => {
  const lines = formatTable(planRates(before, now, options), options, { columns: 60, rows: 2 })
  expect(lines).toEqual([
    'services        conn/s     pkt/s       B/s refused/s',
    'b                    0         0     4.00k         3',
  ])
  expect(formatTable([], options, { columns: 20, rows: 0 })).toHaveLength(1)
})

test.each([
  [0, '0'],
  [7, '7'],
  [3.216, '3.22'],
  [43.5, '43.5'],
  [999.4, '999'],
  [999.6, '1.00k'],
  [12_345, '12.3k'],
  [4.5e9, '4.50G'],
  [1e18, '1000000T'],
])('%d is %s', (value, text) => {
  expect(formatNumber(value)).toBe(text)
})

test('backends that the proxy itself carries to: a stream has no packets to tell', () => {
  const carried = (counts: { begun: number; sentBytes: number; sentPackets: number }) =>
    (['tcp', 'udp'] as const).map((protocol) => ({
      ...nothing,
      service: 'a',
      protocol,
      backend: '10.1.0.1:53',
      isEjected: false,
      ...counts,
    }))
  const earlier = { ...answer(1000, []), carried: carried({ begun: 1, sentBytes: 10, sentPackets: 1 }) }
  const later = {
    ...answer(2000, [row('a', undefined, { begun: 2 })]),
    carried: carried({ begun: 3, sentBytes: 1010, sentPackets: 5 }),
  }
  const rates = planRates(earlier, later, { ...options, view: 'backends', sort: 'name' })
  expect(rates).toMatchObject([
    { name: 'a tcp -> 10.1.0.1:53', connections: 2, packets: undefined, bytes: 1000 },
    { name: 'a udp -> 10.1.0.1:53', connections: 2, packets: 4, bytes: 1000 },
  ])
  expect(formatTable(rates, { ...options, view: 'backends' }, { columns: 70, rows: 3 })[1]).toMatch(/ 2 +- +1\.00k +0$/)
  // What comes to frontends is the sum of a service, and is not counted twice.
  expect(planRates(earlier, later, options)).toMatchObject([{ name: 'a', connections: 2, bytes: 0 }])
})
