import { describe, expect, it } from 'vitest'
import { formatAge, formatMicroTime, formatTime, parseTime } from './time.ts'

const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

describe('formatAge()', () => {
  // As kubectl prints them.
  it.each([
    [0, '0s'],
    [119 * second, '119s'],
    [2 * minute, '2m'],
    [2 * minute + 30 * second, '2m30s'],
    [10 * minute + 30 * second, '10m'],
    [3 * hour, '3h'],
    [7 * hour + 59 * minute, '7h59m'],
    [47 * hour, '47h'],
    [2 * day + 3 * hour, '2d3h'],
    [8 * day + 3 * hour, '8d'],
    [2 * 365 * day + 3 * day, '2y3d'],
    [9 * 365 * day, '9y'],
    [-2 * second, '<invalid>'],
  ])('of %d ms is %s', (ms, text) => expect(formatAge(ms)).toBe(text))
})

describe('parseTime()', () => {
  it('reads zones and fractions', () => {
    expect(parseTime('2026-01-31T12:00:00Z')).toBe(Date.UTC(2026, 0, 31, 12))
    expect(parseTime('2026-01-31T13:00:00+01:00')).toBe(Date.UTC(2026, 0, 31, 12))
    expect(parseTime('2026-01-31T12:00:00.123456Z')).toBeCloseTo(Date.UTC(2026, 0, 31, 12) + 123.456, 6)
  })

  it.each(['', 'yesterday', '2026-01-31', '2026-13-31T12:00:00Z'])('does not read %j', (text) =>
    expect(parseTime(text)).toBeUndefined(),
  )
})

describe('formatTime() and formatMicroTime()', () => {
  it('write UTC, to the second and to the microsecond', () => {
    const ms = Date.UTC(2026, 0, 31, 12, 0, 0, 7)
    expect(formatTime(ms)).toBe('2026-01-31T12:00:00Z')
    expect(formatMicroTime(ms)).toBe('2026-01-31T12:00:00.007000Z')
  })
})
