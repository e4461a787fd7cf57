import { describe, expect, it, test } from 'vitest'
import { findForeign } from './foreign.ts'
import { parseForeignTables } from './foreign-nft.ts'
import { byIpvs, fromNode, fromPod, isOfNode, relayed } from './foreign-samples.ts'

interface Hooked {
  readonly hook: string
  readonly prio?: number
  readonly policy?: string
  readonly type?: string
}

/** A table with one chain; rules of further chains are given by name. */
function listing(
  { hook, prio = 0, policy = 'accept', type = 'filter' }: Hooked,
  rules: readonly (readonly object[])[],
  more: Readonly<Record<string, readonly (readonly object[])[]>> = {},
  { family = 'inet', sets = [] }: { readonly family?: string; readonly sets?: readonly object[] } = {},
): string {
  const of = { family, table: 'fw' }
  const chain = (name: string, list: readonly (readonly object[])[], base: object) => [
    { chain: { ...of, name, ...base } },
    ...list.map((expr, i) => ({ rule: { ...of, chain: name, handle: i + 1, expr } })),
  ]
  return JSON.stringify({
    nftables: [
      { table: { family, name: 'fw', handle: 1 } },
      ...sets.map((set) => ({ set: { ...of, ...set } })),
      ...chain('in', rules, { type, hook, prio, policy }),
      ...Object.entries(more).flatMap(([name, list]) => chain(name, list, {})),
    ],
  })
}

const is = (left: object, right: unknown, op = '==') => ({ match: { op, left, right } })
const payload = (protocol: string, field: string) => ({ payload: { protocol, field } })
const dport = (port: unknown, op = '==') => is(payload('tcp', 'dport'), port, op)
const daddr = (right: unknown) => is(payload('ip', 'daddr'), right)
const meta = (key: string, right: unknown, op = '==') => is({ meta: { key } }, right, op)
const ct = (key: string, right: unknown) => is({ ct: { key } }, right, 'in')
const perClient = (...stmt: object[]) => ({ set: { op: 'add', elem: payload('ip', 'saddr'), set: '@seen', stmt } })
const drop = { drop: null }
const accept = { accept: null }

/** What becomes of a packet: `drop by rule 1`, `maybe drop by rule 2`, ... */
function ends(text: string, packets = fromNode): string[] {
  const { found, doubts } = findForeign(parseForeignTables(text)!, packets, { isLocalAddress: isOfNode })
  const tell = (sure: string) => (end: (typeof found)[number]) =>
    `${sure}${end.verdict} by ${end.handle === undefined ? end.rule : `rule ${end.handle}`}`
  return [...found.map(tell('')), ...doubts.map(tell('maybe '))]
}

describe('a rule counts by hook and effect', () => {
  const output: Hooked = { hook: 'output' }
  it.each<[string, string[], Hooked, ...object[]]>([
    ['a port', ['drop by rule 1'], output, dport(3000), drop],
    ['another port', [], output, dport(3001), drop],
    ['one of a set', ['drop by rule 1'], output, dport({ set: [80, { range: [2000, 4000] }] }), drop],
    ['none of a set', [], output, dport({ set: [80] }), drop],
    ['all others', ['drop by rule 1'], output, dport(22, '!='), drop],
    ['a network', ['reject by rule 1'], output, daddr({ prefix: { addr: '10.244.0.0', len: 16 } }), { reject: {} }],
    ['a link', ['drop by rule 1'], output, meta('oifname', 'eth*'), drop],
    ['another link', [], output, meta('oifname', 'eth1'), drop],
    ['UDP', [], output, is(payload('udp', 'dport'), 3000), drop],
    ['the other family', [], output, is(payload('ip6', 'daddr'), 'fd00::1', '!='), drop],
    ['a mark that nobody has set', [], output, meta('mark', 7), drop],
    ['new connections', ['drop by rule 1'], output, ct('state', 'new'), drop],
    ['what is translated', ['drop by rule 1'], output, ct('status', 'dnat'), drop],
    ['flags', ['drop by rule 1'], output, is(payload('tcp', 'flags'), 'syn', 'in'), drop],
    ['the answer', ['drop by rule 1'], { hook: 'input' }, is(payload('tcp', 'sport'), 3000), drop],
    ['icmp', [], output, is(payload('icmp', 'type'), 'echo-request'), drop],
    ['a user', ['maybe drop by rule 1'], output, meta('skuid', 1000), drop],
    ['a rate', ['maybe drop by rule 1'], output, { limit: { rate: 1, per: 'second', inv: true } }, drop],
    ['a log', ['drop by rule 1'], output, { log: { prefix: 'x' } }, { counter: {} }, drop],
    ['a rate for each client', ['maybe drop by rule 1'], output, perClient({ limit: { rate: 1, per: 'hour' } }), drop],
    ['a number for each client', ['maybe drop by rule 1'], output, perClient({ 'ct count': { val: 20 } }), drop],
    ['a set that grows', ['drop by rule 1'], output, perClient(), drop],
    ['a statement that nobody knows yet', ['maybe drop by rule 1'], output, { tomorrow: {} }, drop],
    ['a queue', ['maybe queued by rule 1'], output, { queue: { num: 0 } }],
    [
      'a program before',
      ['translated by rule 1'],
      { hook: 'output', prio: -100, type: 'nat' },
      { redirect: { port: 1 } },
    ],
    ['the tracker', ['untracked by rule 1'], { hook: 'output', prio: -300 }, { notrack: null }],
    ['another zone', ['maybe zoned by rule 1'], output, { mangle: { key: { ct: { key: 'zone' } }, value: 5 } }],
    ['one hop', ['maybe shortened by rule 1'], output, { mangle: { key: payload('ip', 'ttl'), value: 1 } }],
    ['many hops', [], output, { mangle: { key: payload('ip', 'ttl'), value: 64 } }],
    [
      'a source that is not of this machine',
      ['maybe readdressed by rule 1'],
      { hook: 'postrouting', prio: 90, type: 'nat' },
      { snat: { addr: '192.0.2.9' } },
    ],
    [
      "one of this machine's own",
      [],
      { hook: 'postrouting', prio: 90, type: 'nat' },
      { snat: { addr: '172.30.0.11' } },
    ],
    ['a policy', ['drop by policy drop'], { hook: 'output', policy: 'drop' }, dport(22), accept],
    ['an entry link', [], { hook: 'forward' }, meta('iifname', 'cali123'), drop],
  ])('%s', (_, expected, base, ...rule) => {
    expect(ends(listing(base, [rule]))).toEqual(expected)
  })

  it('sees packets to the service before they are translated, and those to endpoints behind', () => {
    const rule = [daddr('10.96.0.80'), drop]
    expect(ends(listing({ hook: 'output', prio: -300 }, [rule]))).toEqual(['drop by rule 1'])
    expect(ends(listing({ hook: 'output', prio: 0 }, [rule]))).toEqual([])
    expect(ends(listing({ hook: 'input' }, [rule]), byIpvs)).toEqual(['drop by rule 1'])
    expect(ends(listing({ hook: 'input' }, [[dport(41_000), drop]]), relayed)).toEqual(['drop by rule 1'])
  })
})

test('a mark for masquerading is there, and a rule that removes it is a doubt until the packet has been masqueraded', () => {
  const marked = fromPod.map((each) => ({ ...each, masqueradeMark: 0x4000 }))
  const clear = { mangle: { key: { meta: { key: 'mark' } }, value: 0 } }
  const keep = { mangle: { key: { meta: { key: 'mark' } }, value: { '|': [{ meta: { key: 'mark' } }, 1] } } }
  const at = (prio: number, rule: object, packets: typeof fromPod = marked) =>
    ends(listing({ hook: 'postrouting', prio }, [[rule]]), packets)
  expect(at(-150, clear)).toEqual(['maybe unmarked by rule 1'])
  expect(at(150, clear)).toEqual([])
  expect(at(-150, keep)).toEqual([])
  expect(at(-150, clear, fromPod)).toEqual([])
  expect(ends(listing({ hook: 'forward' }, [[meta('mark', 0x4000), drop]]), marked)).toEqual(['drop by rule 1'])
})

test('a check of the way back lets pass what came in by it', () => {
  const rpFilter = is({ fib: { result: 'oif', flags: ['saddr', 'mark', 'iif'] } }, false)
  const text = listing({ hook: 'prerouting', prio: -300 }, [[rpFilter, drop]])
  const packets = fromPod.filter(({ isAnswer }) => !isAnswer)
  const here = (linkTo: () => string | undefined) =>
    findForeign(parseForeignTables(text)!, packets, { isLocalAddress: isOfNode, linkTo })
  expect(here(() => 'cali123')).toEqual({ found: [], doubts: [] })
  expect(here(() => undefined).doubts).toHaveLength(1)
})

test('what a program of this machine takes for itself needs no translation', () => {
  const text = listing({ hook: 'output', prio: -300 }, [[dport(80), { notrack: null }]])
  expect(ends(text)).toEqual(['untracked by rule 1'])
  const cache = (address: string) => isOfNode(address) || address === fromNode[0]!.destination
  expect(findForeign(parseForeignTables(text)!, fromNode, { isLocalAddress: cache })).toEqual({ found: [], doubts: [] })
})

test('a rule before it that may let the packet through makes a drop a doubt', () => {
  const maybe = [meta('skuid', 0), accept]
  expect(ends(listing({ hook: 'output' }, [maybe, [drop]]))).toEqual(['maybe drop by rule 2'])
  expect(ends(listing({ hook: 'output', policy: 'drop' }, [maybe]))).toEqual(['maybe drop by policy drop'])
  expect(ends(listing({ hook: 'output' }, [[accept], [drop]]))).toEqual([])
})

test('a packet returns from chains that it was sent to', () => {
  const to = (target: string, kind = 'jump') => ({ [kind]: { target } })
  const passes = { other: [[dport(3000), { return: null }], [drop]] }
  expect(ends(listing({ hook: 'output' }, [[to('other')], [dport(3000), drop]], passes))).toEqual(['drop by rule 2'])
  expect(ends(listing({ hook: 'output' }, [[to('other', 'goto')], [drop]], passes))).toEqual([])
  const endless = { other: [[to('other')]] }
  expect(ends(listing({ hook: 'output' }, [[to('other')]], endless))).toEqual([])
})

test('sets by name, verdict maps, and those whose elements cannot be told', () => {
  const sets = [{ name: 'ports', type: 'inet_service', elem: [{ elem: { val: 3000, comment: 'web' } }] }]
  expect(ends(listing({ hook: 'output' }, [[dport('@ports'), drop]], {}, { sets }))).toEqual(['drop by rule 1'])
  expect(ends(listing({ hook: 'output' }, [[dport('@gone'), drop]], {}, { sets }))).toEqual(['maybe drop by rule 1'])
  const byState = (state: string, verdict: object) => [
    {
      vmap: {
        key: { ct: { key: 'state' } },
        data: {
          set: [
            ['invalid', drop],
            [state, verdict],
          ],
        },
      },
    },
  ]
  expect(ends(listing({ hook: 'output', policy: 'drop' }, [byState('new', accept)]))).toEqual([])
  expect(ends(listing({ hook: 'output' }, [byState('new', drop)]))).toEqual(['drop by rule 1'])
})

test('firewalld lets what a proxy has translated pass, and nothing else that is forwarded', () => {
  const rules = [
    [ct('state', ['established', 'related']), accept],
    [ct('status', 'dnat'), accept],
    [meta('iifname', 'lo'), accept],
    [{ reject: { type: 'icmpx', expr: 'admin-prohibited' } }],
  ]
  expect(ends(listing({ hook: 'forward', prio: 10 }, rules), fromPod)).toEqual([])
  expect(ends(listing({ hook: 'forward', prio: 10 }, rules.slice(2)), fromPod)).toEqual(['reject by rule 2'])
})

test('a table of a bridge is never more than a doubt, and what is switched off is nothing', () => {
  const rule = [[dport(3000), drop]]
  expect(ends(listing({ hook: 'output' }, rule, {}, { family: 'bridge' }))).toEqual(['maybe drop by rule 1'])
  const { nftables } = JSON.parse(listing({ hook: 'output' }, rule)) as { nftables: [{ table: object }] }
  const off = { nftables: [{ table: { ...nftables[0].table, flags: ['dormant'] } }, ...nftables.slice(1)] }
  expect(parseForeignTables(JSON.stringify(off))).toMatchObject([{ isDormant: true }])
  expect(parseForeignTables('table ip x {')).toBeUndefined()
})
