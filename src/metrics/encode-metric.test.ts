import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { decodeFamilies } from '../../test/support/decode-families.ts'
import { counter, gauge, histogram, lookedUp, Registry, type Printable } from './registry.ts'

interface Recorded {
  readonly observed: string
  /** Base64. */
  readonly family: string
}

const recorded = JSON.parse(readFileSync(join(import.meta.dirname, 'testdata/go-histograms.json'), 'utf8')) as Readonly<
  Record<string, Recorded>
>

const createdMs = 1794717678620

afterEach(() => void vi.useRealTimers())

function encoded(nativeHistograms: boolean, ...metrics: Printable[]): Buffer {
  const registry = new Registry()
  registry.register(...metrics)
  return Buffer.concat([...registry.encoded({ nativeHistograms })])
}

function observing(values: readonly number[]): Printable {
  vi.useFakeTimers({ now: createdMs })
  const metric = histogram({
    name: 'h_seconds',
    help: 'How long\nit took',
    stability: 'ALPHA',
    labels: ['verb', 'ip_family'],
    buckets: [0.001, 0.5, 1],
  })
  const series = metric.with('GET', 'IPv4')
  for (const value of values) series.observe(value)
  return metric
}

describe('a histogram', () => {
  test.each(Object.entries(recorded))('is written byte for byte as Go’s client does: %s', (_, { observed, family }) => {
    const metric = observing(observed === '' ? [] : observed.split(' ').map(Number))
    expect(encoded(true, metric).toString('base64')).toBe(family)
  })

  test('has its native buckets beside the classic ones', () => {
    // Buckets end with powers of 2 ** (1/8): 0.3 lies between the -14th and the -13th, 1 in the 0th.
    const [family] = decodeFamilies(encoded(true, observing([0, 0.3, 0.3, 1, 1, 1, 8, -1])))
    expect(family).toEqual({
      name: 'h_seconds',
      help: '[ALPHA] How long\nit took',
      type: 'histogram',
      metrics: [
        {
          labels: { ip_family: 'IPv4', verb: 'GET' },
          createdMs,
          histogram: {
            count: 8,
            sum: 10.6,
            classic: [
              [0.001, 2],
              [0.5, 4],
              [1, 7],
            ],
            native: {
              schema: 3,
              zeroThreshold: 2 ** -128,
              zeroCount: 1,
              positive: [
                [-13, 2],
                [0, 3],
                [24, 1],
              ],
              negative: [[0, 1]],
            },
          },
        },
      ],
    })
  })

  test('has classic buckets alone where native ones are not wanted', () => {
    const [family] = decodeFamilies(encoded(false, observing([0.3])))
    expect(family!.metrics[0]!.histogram).toEqual({
      count: 1,
      sum: 0.3,
      classic: [
        [0.001, 0],
        [0.5, 1],
        [1, 1],
      ],
    })
  })

  test('counts NaN and nothing more of it, and infinity beyond the largest number', () => {
    const [nan] = decodeFamilies(encoded(true, observing([NaN])))
    expect(nan!.metrics[0]!.histogram).toMatchObject({
      count: 1,
      sum: NaN,
      native: { zeroCount: 0, positive: [], negative: [] },
    })
    expect(nan!.metrics[0]!.histogram!.classic.map(([, count]) => count)).toEqual([0, 0, 0])
    const [wide] = decodeFamilies(encoded(true, observing([Number.MAX_VALUE, Infinity, -Infinity])))
    expect(wide!.metrics[0]!.histogram!.native).toMatchObject({
      positive: [
        [8192, 1],
        [8193, 1],
      ],
      negative: [[8193, 1]],
    })
  })

  test('takes as much memory as a histogram can, and no more, whatever it is given', () => {
    // Every power of two there is, a little above and below, of either sign: all of 8,000 buckets would be some.
    const values = Array.from({ length: 2000 }, (_, i) => 2 ** (i - 1000)).flatMap((size) => [size, -size, 1.3 * size])
    const { histogram: wide } = decodeFamilies(encoded(true, observing(values)))[0]!.metrics[0]!
    const { schema, positive, negative, zeroCount } = wide!.native!
    expect(schema).toBe(-4)
    expect(positive.length + negative.length).toBeLessThanOrEqual(160)
    const all = [...positive, ...negative].reduce((sum, [, count]) => sum + count, zeroCount)
    expect(all).toBe(values.length)
  })
})

test('counters have the time when they were created; those that are looked up and gauges have none', () => {
  vi.useFakeTimers({ now: createdMs })
  const seen = counter({ name: 'a_total', help: 'Seen', labels: ['to', 'from'], stability: 'BETA' })
  seen.with('b', '').inc(7.5)
  seen.with('a', 'é').inc(2 ** 40)
  const size = gauge({ name: 'b', help: '', labels: [] })
  size.with().set(-1)
  const cpu = lookedUp('counter', { name: 'c_total', help: 'CPU', labels: ['core'] }, () => [
    [['1'], 3],
    [['0'], 4],
  ])
  const gone = lookedUp('gauge', { name: 'd', help: '', labels: [] }, () => {
    throw new Error('gone')
  })
  const none = gauge({ name: 'e', help: '', labels: ['l'] })
  expect(decodeFamilies(encoded(true, none, gone, cpu, size, seen))).toEqual([
    {
      name: 'a_total',
      help: '[BETA] Seen',
      type: 'counter',
      metrics: [
        { labels: { from: '', to: 'b' }, value: 7.5, createdMs },
        { labels: { from: 'é', to: 'a' }, value: 2 ** 40, createdMs },
      ],
    },
    { name: 'b', help: '', type: 'gauge', metrics: [{ labels: {}, value: -1 }] },
    {
      name: 'c_total',
      help: 'CPU',
      type: 'counter',
      metrics: [
        { labels: { core: '0' }, value: 4 },
        { labels: { core: '1' }, value: 3 },
      ],
    },
  ])
})
