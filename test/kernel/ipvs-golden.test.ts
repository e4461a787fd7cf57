// Every rule around IPVS, compiled by nft from its text, is what we send. This takes nftables, and no IPVS.

import { describe, expect, it } from 'vitest'
import { formatTable } from '../../src/nftables/format.ts'
import { planGoldenIpvs } from '../support/golden-ipvs.ts'
import { goldenCases } from '../support/golden-tables.ts'
import { compileTableWithNft } from '../support/nft-debug.ts'

describe.each(goldenCases)('the rules of the ipvs mode for %s', (name) => {
  it.each([4, 6] as const)('are what nft makes of their text, for IPv%d', async (family) => {
    const { table } = await planGoldenIpvs(name, family)
    const compiled = compileTableWithNft(formatTable(table))
    for (const chain of table.chains.values()) {
      expect(compiled.get(chain.name) ?? [], chain.name).toEqual(chain.rules.map((rule) => rule.expressions))
    }
  })
})
