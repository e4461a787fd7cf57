import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { formatDuration, parseDuration } from './duration.ts'

test.each([
  ['0', 0],
  ['0s', 0],
  ['30s', 30_000],
  ['1h2m', 3_720_000],
  ['1.5h', 5_400_000],
  ['.5s', 500],
  ['5.s', 5_000],
  ['-1m30s', -90_000],
  ['+250ms', 250],
  ['1us', 0.001],
  ['1µs', 0.001],
  ['1μs', 0.001],
  ['7ns', 7e-6],
  ['0.1ns', 0],
  ['1m1m', 120_000],
])('parseDuration(%j) is %d ms', (text, ms) => {
  expect(parseDuration(text)).toBe(ms)
})

test.each([
  '',
  'soon',
  '5',
  '-5',
  '1 s',
  's',
  '.s',
  '1d',
  '1h2',
  '1e3s',
  '٣s',
  '1.2.3s',
  '--1s',
  '300000h1000000h10000000h',
])('parseDuration(%j) refuses what Go refuses', (text) => {
  expect(parseDuration(text)).toBeUndefined()
})

test.each([
  [0, '0s'],
  [1000, '1s'],
  [30_000, '30s'],
  [3_600_000, '1h0m0s'],
  [86_400_000, '24h0m0s'],
  [900_000, '15m0s'],
  [1500, '1.5s'],
  [250, '250ms'],
  [0.0015, '1.5µs'],
  [1e-6, '1ns'],
  [-90_000, '-1m30s'],
])('formatDuration(%d) is %s', (ms, text) => {
  expect(formatDuration(ms)).toBe(text)
})

test('parseDuration() reads back what formatDuration() wrote, to the nanosecond', () => {
  const wholeMs = fc.integer({ min: -(2 ** 43), max: 2 ** 43 })
  const nanosWithinDays = fc.integer({ min: -(2 ** 52), max: 2 ** 52 }).map((nanos) => nanos / 1e6)
  fc.assert(
    fc.property(fc.oneof(wholeMs, nanosWithinDays), (ms) => {
      const back = parseDuration(formatDuration(ms))!
      expect(Math.abs(back - ms)).toBeLessThan(1e-6)
      expect(formatDuration(back)).toBe(formatDuration(ms))
    }),
  )
})
