import { describe, expect, test } from 'vitest'
import { parsePortRange, portsFor } from './port-range.ts'

describe('parsePortRange()', () => {
  test.each([
    ['40000-40999', { first: 40000, last: 40999 }],
    [' 40000 - 40001 ', { first: 40000, last: 40001 }],
    ['40000+10', { first: 40000, last: 40010 }],
    ['40000', { first: 40000, last: 40000 }],
    ['', undefined],
    [' ', undefined],
    ['0', undefined],
    ['0-0', undefined],
  ])('reads %j', (text, range) => {
    expect(parsePortRange(text)).toEqual(range)
  })

  test.each([
    ['abc', 'it is not a range'],
    ['1-2-3', 'it is not a range'],
    ['-5', 'it is not a range'],
    ['2000-1000', 'it ends before it begins'],
    ['60000-70000', '65535 is the last port'],
    ['65535+1', '65535 is the last port'],
  ])('refuses %j', (text, reason) => {
    expect(() => parsePortRange(text)).toThrow(`Cannot use port range ${JSON.stringify(text)}: ${reason}`)
  })
})

describe('portsFor()', () => {
  const range = { first: 40000, last: 40009 }

  test('gives every port of the range once', () => {
    expect(new Set(portsFor('default/web', range))).toEqual(new Set(Array.from({ length: 10 }, (_, i) => 40000 + i)))
  })

  test('begins where the name says, always at the same', () => {
    const first = (name: string) => portsFor(name, range).next().value
    expect(first('default/web')).toBe(first('default/web'))
    const starts = new Set(Array.from({ length: 100 }, (_, i) => first(`default/svc-${i}`)))
    expect(starts.size).toBeGreaterThan(5)
  })
})
