// Every rule of the golden tables, compiled by nft from its text, is what we send. So nft can print all that we write.

import { describe, expect, it } from 'vitest'
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
