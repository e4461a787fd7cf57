// Links, addresses and routes as we make them and as ip (iproute2) sees them.

import { execFileSync } from 'node:child_process'
import { beforeAll, expect, test } from 'vitest'
import { unshareNetwork } from '../../src/system/netns.ts'
import { Rtnetlink } from '../../src/links/rtnetlink.ts'
import { formatCidr, parseCidr, asBytes, ipBytes } from '../../src/lib/ip.ts'
import { openNetworkNamespace } from '../../packages/sandbox/src/netns/network-namespace.ts'

unshareNetwork()
let links: Rtnetlink
beforeAll(() => {
  links = new Rtnetlink()
  links.setUp('lo')
})

function ip(...args: readonly string[]): string {
  return execFileSync('ip', args, { encoding: 'utf8' })
}

test('addLink() makes a bridge that keeps its hardware address, and cables to it', () => {
  const bridge = links.addLink({
    name: 'br0',
    kind: { type: 'bridge', hardwareAddress: asBytes('\x02\0\x0a\x01\0\x01') },
  })
  links.addLink({ name: 'v0', master: bridge, kind: { type: 'veth', peer: 'v1' } })
  links.setUp('v1')
  const [found] = JSON.parse(ip('-j', '-d', 'link', 'show', 'v0')) as Record<string, unknown>[]
  expect(found).toMatchObject({ ifname: 'v0', link: 'v1', master: 'br0', operstate: 'UP' })
  const [br0] = JSON.parse(ip('-j', 'link', 'show', 'br0')) as Record<string, unknown>[]
  expect(br0).toMatchObject({ ifindex: bridge, address: '02:00:0a:01:00:01', operstate: 'UP' })
})

test('addLink() puts the other end of a cable into another namespace', () => {
  using other = openNetworkNamespace('other')
  links.addLink({ name: 'out', kind: { type: 'veth', peer: 'in', netns: other.fd } })
  expect(other.enter(() => ip('-br', 'link'))).toMatch(/^in@if\d+ /m)
  expect(ip('-br', 'link')).not.toMatch(/^in@/m)
})

test('addAddress() and setRoute() do what ip shows', () => {
  const index = links.setUp('br0')
  links.addAddress(index, ipBytes('10.1.0.1'), 24)
  links.addAddress(index, ipBytes('fd01::1'), 64)
  links.setRoute(parseCidr('10.2.0.0/16')!, index, ipBytes('10.1.0.2'))
  links.setRoute(parseCidr('10.3.0.7/32')!, index)
  links.setRoute(parseCidr('10.4.0.0/16')!, index, ipBytes('10.1.0.2'), ipBytes('10.1.0.3'))
  links.setRoute(parseCidr('fd02::/48')!, index, ipBytes('fd01::2'))
  links.setRoute(parseCidr('fd04::/48')!, index, ipBytes('fd01::2'), ipBytes('fd01::3'))
  links.setRoute(parseCidr('10.5.0.0/16')!, 'unreachable')
  links.setRoute(parseCidr('0.0.0.0/0')!, index, ipBytes('10.1.0.9'))
  const routes = `${ip('-4', 'route')}${ip('-6', 'route')}`.replace(/ +$/gm, '')
  for (const line of [
    'default via 10.1.0.9 dev br0 proto static',
    '10.1.0.0/24 dev br0 proto kernel scope link src 10.1.0.1',
    '10.2.0.0/16 via 10.1.0.2 dev br0 proto static',
    '10.3.0.7 dev br0 proto static scope link',
    'unreachable 10.5.0.0/16 proto static',
    'fd02::/48 via fd01::2 dev br0 proto static metric 1024 pref medium',
  ]) {
    expect(routes.split('\n')).toContain(line)
  }
  expect(routes).toMatch(
    /10\.4\.0\.0\/16 proto static\s+nexthop via 10\.1\.0\.2 dev br0 weight 1\s+nexthop via 10\.1\.0\.3 /,
  )
  expect(routes).toMatch(/fd04::\/48 proto static .*\n?\s*nexthop via fd01::2 dev br0 weight 1\s+nexthop via fd01::3 /)
})

test('setRoute() replaces a route to the same range', () => {
  const index = links.setUp('br0')
  links.setRoute(parseCidr('10.2.0.0/16')!, index, ipBytes('10.1.0.3'))
  expect(ip('route', 'show', '10.2.0.0/16').trim()).toBe('10.2.0.0/16 via 10.1.0.3 dev br0 proto static')
})

test('routeDestinations() lists what ip lists, but for the default route', () => {
  const ours = links.routeDestinations(4).map(formatCidr)
  expect(ours).toEqual(
    expect.arrayContaining(['10.1.0.0/24', '10.2.0.0/16', '10.3.0.7/32', '10.4.0.0/16', '127.0.0.0/8']),
  )
  expect(ours).not.toContain('0.0.0.0/0')
  expect(links.routeDestinations(6).map(formatCidr)).toEqual(expect.arrayContaining(['fd01::/64', 'fd02::/48']))
})

test('deleteLink() says whether there was one', () => {
  expect(links.deleteLink('v0')).toBe(true)
  expect(links.deleteLink('v0')).toBe(false)
})

test('an operation that the kernel refuses is named with its reason', () => {
  const link = { name: 'br0', kind: { type: 'bridge', hardwareAddress: asBytes('\x02\0\0\0\0\x01') } } as const
  expect(() => links.addLink(link)).toThrow('Cannot create bridge link br0: EEXIST')
  expect(() => links.setUp('nowhere')).toThrow('Cannot find link nowhere: ENODEV')
  expect(() => links.addAddress(1 << 20, ipBytes('10.9.0.1'), 24)).toThrow('Cannot add address 10.9.0.1/24: ENODEV')
})
