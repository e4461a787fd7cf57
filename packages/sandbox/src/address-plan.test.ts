import { describe, expect, test } from 'vitest'
import { cidrContains, formatCidr, parseCidr, type Cidr, ipBytes } from '../../../src/lib/ip.ts'
import { fitOf, MAX_NODES, MAX_SANDBOXES, planAddresses, planNode } from './address-plan.ts'

const cidr = (text: string): Cidr => parseCidr(text)!

describe('planAddresses()', () => {
  test('looks like a real cluster', () => {
    expect(planAddresses(0, [4, 6])).toEqual({
      index: 0,
      families: [4, 6],
      podRanges: ['10.244.0.0/16', 'fd00:244::/48'],
      serviceRanges: ['10.96.0.0/16', 'fd00:96::/112'],
      loadBalancerRanges: ['172.30.0.128/25', 'fd00:30:0:1::/112'],
      fabricRanges: ['172.30.0.0/25', 'fd00:30::/64'],
      machine: ['172.30.0.1', 'fd00:30::1'],
      controlPlane: ['172.30.0.2', 'fd00:30::2'],
    })
  })

  test('gives every sandbox ranges that no other has', () => {
    const ranges = Array.from({ length: MAX_SANDBOXES }, (_, index) => planAddresses(index, [4, 6])).flatMap(
      ({ podRanges, serviceRanges, loadBalancerRanges, fabricRanges }) =>
        [...podRanges, ...serviceRanges, ...loadBalancerRanges, ...fabricRanges].map(cidr),
    )
    const shared: string[] = []
    for (const [i, one] of ranges.entries()) {
      expect(formatCidr(one)).not.toMatch(/^NaN|undefined/)
      for (const other of ranges.slice(i + 1)) {
        const isShared = cidrContains(one, other.network) || cidrContains(other, one.network)
        if (isShared) shared.push(`${formatCidr(one)} and ${formatCidr(other)}`)
      }
    }
    expect(ranges.length).toBeGreaterThan(MAX_SANDBOXES)
    expect(shared).toEqual([])
  })
})

describe('planNode()', () => {
  test('keeps nodes and their pods in their ranges, each node with addresses of its own', () => {
    const plan = planAddresses(63, [4, 6])
    const seen = new Set<string>()
    for (let n = 1; n <= MAX_NODES; n++) {
      const node = planNode(plan, n)
      for (const [i, address] of node.addresses.entries()) {
        expect(cidrContains(cidr(plan.fabricRanges[i]!), ipBytes(address))).toBe(true)
        expect(cidrContains(cidr(plan.podRanges[i]!), cidr(node.podRanges[i]!).network)).toBe(true)
        expect(cidrContains(cidr(node.podRanges[i]!), ipBytes(node.gateways[i]!))).toBe(true)
        seen.add(address).add(node.gateways[i]!)
      }
    }
    expect(seen.size).toBe(MAX_NODES * 2 * 2)
  })
})

describe('fitOf()', () => {
  const plan = planAddresses(0, [4])

  test('a machine with other networks is free', () => {
    expect(fitOf(plan, ['127.0.0.0/8', '192.168.1.0/24', '172.17.0.0/16', '10.0.0.0/24', 'fd00::/64'].map(cidr))).toBe(
      'free',
    )
  })

  test.each(['10.96.0.0/16', '10.96.1.2/32', '10.244.7.0/24', '172.30.0.0/25'])(
    'a route to %s is in the way',
    (route) => {
      expect(fitOf(plan, [cidr(route)])).toBe('taken')
    },
  )

  test.each(['10.0.0.0/8', '172.16.0.0/12'])('a route to %s is larger: its part of it can be had', (route) => {
    expect(fitOf(plan, [cidr(route)])).toBe('within')
  })
})
