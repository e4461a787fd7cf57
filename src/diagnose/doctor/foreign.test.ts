import { expect, test } from 'vitest'
import { parseListing } from '../../nftables/parse-json.ts'
import { findForeign } from './foreign.ts'
import { packetTo } from './packets.ts'

const node = { source: '172.30.0.11', inputInterface: undefined }
const endpoint = { address: '10.244.1.3', port: 3000, protocol: 'TCP', isUntranslated: false }
const service = { address: '10.96.0.80', port: 80, protocol: 'TCP', isUntranslated: true }
const packets = [packetTo(endpoint, node), packetTo(service, node)]

interface Hooked {
  readonly hook: string
  readonly prio: number
  readonly policy?: string
}

function listing(name: string, { hook, prio, policy }: Hooked, ...rules: readonly (readonly object[])[]): string {
  const of = { family: 'inet', table: name, chain: 'in' }
  return JSON.stringify({
    nftables: [
      { table: { family: 'inet', name, handle: 1 } },
      { chain: { family: 'inet', table: name, name: 'in', type: 'filter', hook, prio, policy } },
      ...rules.map((expr) => ({ rule: { ...of, expr } })),
    ],
  })
}

const to = (field: string, value: string | number) => ({
  match: { op: '==', left: { payload: { protocol: field === 'dport' ? 'tcp' : 'ip', field } }, right: value },
})
const find = (text: string) =>
  findForeign(
    parseListing(text).filter(({ table }) => table.family === 'ip'),
    packets,
  )

test('a table counts by what it does, and not by its name', () => {
  for (const name of ['filter', 'nat', 'mangle', 'fw', 'firewalld']) {
    const { found } = find(listing(name, { hook: 'output', prio: 0 }, [to('dport', 3000), { drop: null }]))
    expect(found, name).toMatchObject([{ table: `inet ${name}`, verdict: 'drop' }])
  }
  expect(find(listing('kube-proxy', { hook: 'output', prio: 0 }, [to('dport', 3000), { drop: null }])).found).toEqual(
    [],
  )
})

test('a rule that sees packets before their translation is asked about the service, one behind it about endpoints', () => {
  const drop = [to('daddr', '10.96.0.80'), { drop: null }]
  expect(find(listing('fw', { hook: 'output', prio: -300 }, drop)).found).toHaveLength(1)
  expect(find(listing('fw', { hook: 'output', prio: 0 }, drop)).found).toEqual([])
})

test('a rule that cannot be read and may drop is a doubt, and no all-clear', () => {
  const unread = [{ match: { op: '==', left: { meta: { key: 'skuid' } }, right: 1000 } }, { drop: null }]
  const { found, doubts } = find(listing('fw', { hook: 'output', prio: 0 }, unread))
  expect(found).toEqual([])
  expect(doubts).toEqual([
    'table inet fw, chain in has a rule that drops or refuses, under a condition that is not understood here',
  ])
  expect(find(listing('fw', { hook: 'output', prio: 0, policy: 'drop' }, unread.slice(0, 1))).doubts).toHaveLength(1)
})
