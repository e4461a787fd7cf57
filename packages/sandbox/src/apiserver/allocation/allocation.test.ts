import { describe, expect, it } from 'vitest'
import { IpRange } from './ip-range.ts'
import { ipBand, pickFree, portBand } from './pick.ts'

describe('IpRange', () => {
  it('leaves out the address of the network and the IPv4 broadcast address', () => {
    const range = IpRange.parse('10.0.0.0/29')
    expect(range.size).toBe(6)
    expect([range.at(0), range.at(5)]).toEqual(['10.0.0.1', '10.0.0.6'])
    expect(['10.0.0.0', '10.0.0.7', '10.0.0.8'].map((ip) => range.contains(ip))).toEqual([false, false, false])
    expect(range.contains('10.0.0.6')).toBe(true)
  })

  it('has a last address in IPv6', () => {
    const range = IpRange.parse('fd00::/126')
    expect(range.size).toBe(3)
    expect(range.at(2)).toBe('fd00::3')
    expect(range.contains('fd00::3')).toBe(true)
    expect(range.contains('fd00::')).toBe(false)
    expect(range.contains('10.0.0.1')).toBe(false)
  })

  it('counts across bytes', () => {
    expect(IpRange.parse('10.96.0.0/16').at(256)).toBe('10.96.1.1')
    expect(IpRange.parse('fd00::/64').at(2 ** 33)).toBe('fd00::2:0:1')
  })
})

describe('pickFree()', () => {
  const all = { size: 2768, isFree: () => true }

  it('stays out of the lower band while it can', () => {
    for (const random of [0, 0.5, 0.999]) expect(pickFree(all, portBand, () => random)).toBeGreaterThanOrEqual(86)
  })

  it('goes into the lower band when the rest is taken', () => {
    const range = { size: 2768, isFree: (offset: number) => offset < 2 }
    expect([0, 1]).toContain(pickFree(range, portBand))
  })

  it('finds the only free one, and says when there is none', () => {
    expect(pickFree({ size: 254, isFree: (offset) => offset === 200 }, ipBand)).toBe(200)
    expect(pickFree({ size: 254, isFree: () => false }, ipBand)).toBeUndefined()
    expect(pickFree({ size: 0, isFree: () => true }, ipBand)).toBeUndefined()
  })
})
