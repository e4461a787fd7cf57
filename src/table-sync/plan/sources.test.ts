import { expect, test } from 'vitest'
import { cidr } from '../../../test/support/arbitrary-views.ts'
import { formatIp, asBytes } from '../../lib/ip.ts'
import type { Frontend } from '../../model/types.ts'
import type { SharedRule } from '../../nftables/fragment.ts'
import { Elements } from './frontend.ts'
import { guardSchema } from './schema.ts'
import { planSources } from './sources.ts'

/** What a frontend with these ranges has: networks by set, and rules. */
function plan(family: 4 | 6, ranges: readonly string[] | undefined) {
  const address = family === 4 ? '192.0.2.1' : '2001:db8::1'
  const allowedSources = ranges?.map(cidr)
  const frontend = { address, protocol: 'TCP', port: 80, allowedSources } as Frontend
  const elements = new Elements()
  const sharedRules = new Set<SharedRule>()
  planSources(guardSchema(family), frontend, { elements, sharedRules })
  const ofSource = (key: string) => formatIp(asBytes(key.slice(family === 4 ? -4 : -16)))
  const lists = elements.list().filter(({ set }) => set.name !== 'firewall-frontends')
  return {
    isGuarded: lists.length < elements.list().length,
    networks: Object.fromEntries(
      lists.map(({ set, elements: list }) => [set.name, list.map(({ key }) => ofSource(key))]),
    ),
    rules: [...sharedRules].map(({ rule }) => rule.text),
  }
}

test('each length of prefix has a set and a rule, and ranges that touch or nest are one', () => {
  const ranges = ['10.1.0.0/24', '10.1.1.0/24', '10.1.1.7/32', '172.16.0.9/32', '172.16.0.1/32']
  expect(plan(4, ranges)).toEqual({
    isGuarded: true,
    networks: { 'firewall-sources-23': ['10.1.0.0'], 'firewall-sources-32': ['172.16.0.1', '172.16.0.9'] },
    rules: [
      'ip daddr . meta l4proto . th dport . ip saddr & 255.255.254.0 @firewall-sources-23 return',
      'ip daddr . meta l4proto . th dport . ip saddr @firewall-sources-32 return',
    ],
  })
  expect(plan(6, ['2001:db8:1::/48']).rules).toEqual([
    'ip6 daddr . meta l4proto . th dport . ip6 saddr & ffff:ffff:ffff:: @firewall-sources-48 return',
  ])
})

test('a frontend with ranges of the other family alone is guarded, and nobody is let in', () => {
  expect(plan(4, [])).toEqual({ isGuarded: true, networks: {}, rules: [] })
  expect(plan(4, undefined).isGuarded).toBe(false)
})
