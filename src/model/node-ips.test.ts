import { describe, expect, test } from 'vitest'
import { planNodeIps } from './node-ips.ts'

function ips(addresses: readonly (readonly [type: string, address: string])[], bindAddress = '0.0.0.0') {
  const { primaryFamily, ips: found } = planNodeIps(
    { addresses: addresses.map(([type, address]) => ({ type, address })) },
    bindAddress,
  )
  return [primaryFamily, found[4], found[6]]
}

describe('planNodeIps()', () => {
  test('takes the first internal address of each family, the very first being primary', () => {
    const v4 = ['InternalIP', '192.168.0.1'] as const
    const v6 = ['InternalIP', 'FD00::1'] as const
    expect(ips([v4, ['InternalIP', '192.168.0.2'], v6])).toEqual([4, '192.168.0.1', 'fd00::1'])
    expect(ips([v6, v4])).toEqual([6, '192.168.0.1', 'fd00::1'])
    expect(ips([v6])).toEqual([6, '127.0.0.1', 'fd00::1'])
  })

  test('takes external addresses only after internal ones', () => {
    const external = ['ExternalIP', '203.0.113.1'] as const
    expect(ips([external, ['InternalIP', '192.168.0.1']])).toEqual([4, '192.168.0.1', '::1'])
    expect(ips([external, ['InternalIP', 'fd00::1']])).toEqual([6, '203.0.113.1', 'fd00::1'])
    expect(ips([external])).toEqual([4, '203.0.113.1', '::1'])
  })

  test('ignores host names and what is no address', () => {
    expect(
      ips([
        ['Hostname', '192.168.0.9'],
        ['InternalIP', 'x'],
        ['InternalIP', '192.168.0.1'],
      ]),
    ).toEqual([4, '192.168.0.1', '::1'])
  })

  test('is overridden by a bind address that names one address', () => {
    const node = [['InternalIP', '192.168.0.1']] as const
    expect(ips(node, '10.0.0.9')).toEqual([4, '10.0.0.9', '::1'])
    expect(ips(node, 'fd00::9')).toEqual([6, '192.168.0.1', 'fd00::9'])
    for (const any of ['0.0.0.0', '::', '', 'x']) expect(ips(node, any)).toEqual([4, '192.168.0.1', '::1'])
  })

  test('assumes loopback when nothing is known', () => {
    expect(planNodeIps(undefined, '0.0.0.0')).toEqual({ primaryFamily: 4, ips: { 4: '127.0.0.1', 6: '::1' } })
    expect(ips([])).toEqual([4, '127.0.0.1', '::1'])
  })
})
