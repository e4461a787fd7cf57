import { describe, expect, it } from 'vitest'
import { formatRule } from './format.ts'

describe('formatRule()', () => {
  it.each([
    [2, '0.50000000000'],
    [3, '0.33333333349'],
    [7, '0.14285714272'],
    [250, '0.00400000019'],
    [1000, '0.00100000016'],
  ])('prints the chance of one in %d as iptables-save does', (outOf, text) => {
    expect(formatRule({ matches: [{ kind: 'random', outOf }], target: undefined })).toBe(
      `-m statistic --mode random --probability ${text}`,
    )
  })

  it('leaves out networks that contain everything, as iptables-save does', () => {
    const rule = { source: { network: '0.0.0.0/0' }, destination: { network: '::/0' }, matches: [] }
    expect(formatRule({ ...rule, target: { kind: 'accept' } })).toBe('-j ACCEPT')
  })

  it('quotes comments that have more than letters, digits, dashes and underscores', () => {
    const says = (text: string) => formatRule({ matches: [{ kind: 'comment', text }], target: undefined })
    expect(says('a-b_c1')).toBe('-m comment --comment a-b_c1')
    expect(says('it says "no"')).toBe('-m comment --comment "it says \\"no\\""')
  })
})

it.each(['a\nCOMMIT', '\r', '\0', '\u001b[2J', '\u007f'])('formatRule() throws rather than write %j', (text) => {
  expect(() => formatRule({ matches: [{ kind: 'comment', text }], target: undefined })).toThrow('control characters')
})
