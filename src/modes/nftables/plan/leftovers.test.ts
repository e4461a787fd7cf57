import { expect, test } from 'vitest'
import type { Chain, NftSet, Table } from '../../../nftables/types.ts'
import { isOfKubeProxy, planLeftovers } from './leftovers.ts'

const chain = (name: string): [string, Chain] => [name, { name, rules: [] } as unknown as Chain]
const set = (name: string, data?: NftSet['data']): [string, NftSet] => [name, { name, data } as NftSet]

function table(chains: readonly string[], sets: readonly [string, NftSet][]): Table {
  return {
    family: 'ip',
    name: 'kube-proxy',
    comment: undefined,
    sets: new Map(sets),
    chains: new Map(chains.map(chain)),
    elements: new Map(),
  }
}

const theirs = {
  chains: ['services', 'nat-prerouting', 'firewall-check', 'service-ULMVA6XW-ns/web/tcp/', 'reject-chain', 'a-new-one'],
  sets: [
    set('service-ips', 'verdict'),
    set('cluster-ips'),
    set('hairpin-connections'),
    set('affinity-ULMVA6XW-ns/web/tcp/__10.1.0.1/80'),
    set('a-new-one'),
  ],
}
const ours = {
  chains: [
    'affinity-check',
    'services-pick',
    'stick-ULMVA6XW-ns/web/tcp/',
    'record-external-ULMVA6XW-ns/web/tcp/',
    'limit-ULMVA6XW-ns/web/tcp/',
    'over-limit-ULMVA6XW-ns/web/tcp/',
  ],
  sets: [
    set('served-ips'),
    set('served-ips-2'),
    set('served-nodeports-local-17'),
    set('service-affinity', 'verdict'),
    set('nodeport-affinity-record-udp', 'verdict'),
    set('limited-services', 'verdict'),
    set('limited-nodeports', 'verdict'),
    set('client-rates-ULMVA6XW-ns/web/tcp/'),
    set('client-connections-ULMVA6XW-ns/web/tcp/'),
    set('affinity-local-ULMVA6XW-ns/web/tcp/', ['ipv4_addr', 'inet_service']),
  ],
}

test('planLeftovers() leaves a table alone that only kube-proxy has written', () => {
  expect(planLeftovers(table(theirs.chains, theirs.sets))).toEqual([])
})

test('planLeftovers() removes what kube-proxy does not know: rules, then sets, then chains', () => {
  const both = table([...theirs.chains, ...ours.chains], [...theirs.sets, ...ours.sets])
  const of = (op: string, names: readonly string[]) => names.map((name) => ({ op, name }))
  expect(planLeftovers(both)).toEqual([
    ...of('flushChain', ours.chains),
    ...of(
      'deleteSet',
      ours.sets.map(([name]) => name),
    ),
    ...of('deleteChain', ours.chains),
  ])
})

test('isOfKubeProxy() tells its table from ours', () => {
  expect(isOfKubeProxy(table(theirs.chains, [...theirs.sets, ...ours.sets]))).toBe(true)
  expect(isOfKubeProxy(table(ours.chains, ours.sets))).toBe(false)
})
