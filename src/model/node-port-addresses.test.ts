import { describe, expect, test } from 'vitest'
import type { Family } from '../lib/ip.ts'
import { namesLocalhost, openNodePortAddresses, planNodePortAddresses } from './node-port-addresses.ts'

const machineAddresses = [
  '127.0.0.1',
  '::1',
  '192.168.0.9',
  '192.168.0.1',
  '10.1.0.1',
  'fd00::1',
  'fe80::1',
  '192.168.0.1',
]
const nodeIps = { 4: '192.168.0.1', 6: '::1' }

function open(configured: readonly string[], family: Family = 4) {
  const planned = planNodePortAddresses(configured, { family, nodeIp: nodeIps[family], machineAddresses })
  return planned.kind === 'all' ? 'all' : planned.addresses
}

describe('planNodePortAddresses()', () => {
  test('opens all addresses when nothing is configured', () => {
    expect(open([])).toBe('all')
  })

  test.each([['all'], ['0.0.0.0/0']])('opens all addresses for %s, whatever else there is', (word) => {
    expect(open([word, '192.168.0.1/32', 'primary'])).toBe('all')
  })

  test('opens the addresses of the machine that a range holds, sorted, once, without loopback', () => {
    expect(open(['192.168.0.0/16'])).toEqual(['192.168.0.1', '192.168.0.9'])
    expect(open(['192.168.0.0/16', '10.0.0.0/8', '127.0.0.0/8'])).toEqual(['10.1.0.1', '192.168.0.1', '192.168.0.9'])
    expect(open(['172.16.0.0/12'])).toEqual([])
  })

  test('opens the address of the node for primary', () => {
    expect(open(['primary'])).toEqual(['192.168.0.1'])
    expect(open(['primary', '10.0.0.0/8'])).toEqual(['10.1.0.1', '192.168.0.1'])
  })

  test('opens nothing for primary when the machine does not have the address', () => {
    const context = { family: 4, nodeIp: '192.168.0.77', machineAddresses } as const
    expect(planNodePortAddresses(['primary'], context)).toEqual({ kind: 'only', addresses: [] })
  })

  test('opens all addresses of a family about which nothing is said', () => {
    expect(open(['192.168.0.0/16'], 6)).toBe('all')
    expect(open(['primary'], 6)).toBe('all')
    expect(open(['fd00::/8'], 6)).toEqual(['fd00::1'])
  })

  test('opens nothing that a packet could reach for localhost, but says something about the family', () => {
    expect(open(['localhost'])).toEqual([])
    expect(open(['localhost'], 6)).toEqual([])
    expect(open(['localhost', 'primary'], 6)).toEqual([])
  })
})

describe('openNodePortAddresses()', () => {
  test('lists what is open on this machine', () => {
    expect([...openNodePortAddresses({ kind: 'only', addresses: ['192.168.0.1'] }, machineAddresses)]).toEqual([
      '192.168.0.1',
    ])
    const all = openNodePortAddresses({ kind: 'all' }, ['127.0.0.1', '::1', '192.168.0.9', 'FD00::1'])
    expect([...all]).toEqual(['192.168.0.9', 'fd00::1'])
  })
})

describe('namesLocalhost()', () => {
  test.each([
    [['localhost'], true, true],
    [['primary', 'localhost'], true, true],
    [['0.0.0.0/0', '127.0.0.1/32'], true, false],
    [['127.0.0.0/8', '::1/128'], true, true],
    // The address that the proxy would listen on is not in it.
    [['127.0.0.2/32'], false, false],
    // These have it as every address.
    [['all'], false, false],
    [['0.0.0.0/0', '::/0'], false, false],
    [['primary'], false, false],
    [[], false, false],
  ])('%j: %s for IPv4, %s for IPv6', (configured, ipv4, ipv6) => {
    expect([namesLocalhost(configured, 4), namesLocalhost(configured, 6)]).toEqual([ipv4, ipv6])
  })
})
