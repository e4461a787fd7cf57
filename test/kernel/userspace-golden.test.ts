// Every rule of the userspace mode, compiled by nft from its text, is what we send. So nft can print all that we write.

import { describe, expect, it } from 'vitest'
import { formatTable } from '../../src/nftables/format.ts'
import { goldenCases } from '../support/golden-tables.ts'
import { planGoldenUserspace } from '../support/golden-userspace.ts'
import { compileTableWithNft } from '../support/nft-debug.ts'

describe.each(goldenCases)('the rules of the userspace mode for %s', (name) => {
  it.each([4, 6] as const)('are what nft makes of their text, for IPv%d', (family) => {
    const table = planGoldenUserspace(name, family)
    const compiled = compileTableWithNft(formatTable(table))
    for (const chain of table.chains.values()) {
      expect(compiled.get(chain.name) ?? [], chain.name).toEqual(chain.rules.map((rule) => rule.expressions))
    }
  })
})
