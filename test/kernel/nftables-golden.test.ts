// Every rule of the golden tables, compiled by nft from its text, is what we send. So nft can print all that we write.

import { describe, expect, it } from 'vitest'
import { planEndsTable } from '../../src/ends/plan-table.ts'
import { parseCidr } from '../../src/lib/ip.ts'
import { CHAINS } from '../../src/modes/nftables/plan/names.ts'
import { nftablesPlanner } from '../../src/modes/nftables/plan/planner.ts'
import { destinationAddress, isIn, nftFamily, rule, sourceIs, sourceNetwork } from '../../src/nftables/language.ts'
import { goldenCases, planGoldenTable } from '../support/golden-tables.ts'
import { formatTable } from '../../src/nftables/format.ts'
import { compileTableWithNft } from '../support/nft-debug.ts'

// nft 1.0.6 cannot compile `update @map { ip6 saddr timeout 1s : ip6 daddr . th dport }`: it miscounts registers and aborts.
const beyondNft = /update @\S+ \{ ip6 saddr/

describe.each(goldenCases)('the tables for %s', (name) => {
  it.each([4, 6] as const)('are what nft makes of their text, for IPv%d', (family) => {
    const table = planGoldenTable(name, family)
    const lines = formatTable(table).split('\n')
    const compiled = compileTableWithNft(lines.filter((line) => !beyondNft.test(line)).join('\n'))
    for (const chain of table.chains.values()) {
      const rules = chain.rules.filter((rule) => !beyondNft.test(rule.text))
      expect(compiled.get(chain.name) ?? [], chain.name).toEqual(rules.map((rule) => rule.expressions))
    }
  })
})

it.each([4, 6] as const)('so are the rules that refuse node ports on localhost, for IPv%d', (family) => {
  const table = planGoldenTable('external', family, nftablesPlanner, { localhostNodePorts: 'refused' })
  const lines = formatTable(table).split('\n')
  const compiled = compileTableWithNft(lines.filter((line) => !beyondNft.test(line)).join('\n'))
  for (const name of [CHAINS.nodePortEndpointsCheck, CHAINS.refuseLocalhost]) {
    expect(compiled.get(name), name).toEqual(table.chains.get(name)!.rules.map(({ expressions }) => expressions))
  }
})

it.each([4, 6] as const)('so is the rule that answers pings, for IPv%d', (family) => {
  const nodeIp = family === 4 ? '192.168.0.1' : 'fd00::1'
  const table = planGoldenTable('external', family, nftablesPlanner, { answerPing: true, nodeIp })
  const compiled = compileTableWithNft(
    formatTable(table)
      .split('\n')
      .filter((line) => !beyondNft.test(line))
      .join('\n'),
  )
  expect(compiled.get(CHAINS.natPrerouting)).toEqual(
    table.chains.get(CHAINS.natPrerouting)!.rules.map(({ expressions }) => expressions),
  )
})

it.each([4, 6] as const)('so are the rules that reset connections to removed endpoints, for IPv%d', (family) => {
  const { chains, sets } = planEndsTable(family)
  const table = {
    family: nftFamily(family),
    name: 'ends',
    comment: undefined,
    sets: new Map([...(sets ?? [])].map((set) => [set.name, set])),
    chains: new Map([...chains].map((chain) => [chain.name, chain])),
    elements: new Map(),
  }
  const compiled = compileTableWithNft(formatTable(table))
  for (const { name, rules } of chains)
    expect(compiled.get(name), name).toEqual(rules.map(({ expressions }) => expressions))
})

describe('a range of sources', () => {
  const ranges = ['10.0.0.0/8', '10.16.0.0/12', '10.1.2.0/24', '10.1.2.128/25', '10.1.2.3/32', '128.0.0.0/1']
  const ranges6 = ['fd00::/8', 'fd01:2:3::/48', 'fd01:2:3::/61', 'fd01::/64', 'fd01::7/128', '8000::/1']

  it.each([...ranges, ...ranges6])('is compared as nft does: %s', (text) => {
    const cidr = parseCidr(text)!
    const rules = (['eq', 'neq'] as const).map((op) => rule([sourceIs(op, cidr)]))
    const lines = rules.map((each) => `${each.text} return`).join('\n')
    const compiled = compileTableWithNft(`table ${nftFamily(cidr.family)} t {\nchain c {\n${lines}\n}\n}`)
    expect(compiled.get('c')!.map((expressions) => expressions.slice(0, -1))).toEqual(
      rules.map(({ expressions }) => expressions),
    )
  })
})

it.each([4, 6] as const)('a source is masked as nft does it, for each length of prefix in IPv%d', (family) => {
  const prefixes = Array.from({ length: family === 4 ? 32 : 128 }, (_, i) => i + 1)
  const rules = prefixes.map((n) => rule([isIn([destinationAddress(family), sourceNetwork(family, n)], `s${n}`)]))
  const address = `ipv${family}_addr`
  const sets = prefixes.map((n) => `set s${n} { type ${address} . ${address}; }`)
  const lines = rules.map(({ text }) => `${text} return`)
  const compiled = compileTableWithNft(
    `table ${nftFamily(family)} t {\n${sets.join('\n')}\nchain c {\n${lines.join('\n')}\n}\n}`,
  )
  expect(compiled.get('c')!.map((expressions) => expressions.slice(0, -1))).toEqual(
    rules.map(({ expressions }) => expressions),
  )
})
