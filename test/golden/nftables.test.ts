// One input, the canonical text of the tables. After a wanted change: npm run golden, and review the difference.

import { describe, expect, it } from 'vitest'
import { formatTable } from '../../src/nftables/format.ts'
import { formatBeyond } from '../support/beyond-base.ts'
import { goldenCases, planEmptyTable, planGoldenTable } from '../support/golden-tables.ts'

describe('the tables of the nftables mode', () => {
  const base = { 4: formatTable(planEmptyTable(4)), 6: formatTable(planEmptyTable(6)) }

  it('without services', async () => {
    await expect(base[4] + base[6]).toMatchFileSnapshot('nftables-base.nft')
  })

  it.each(goldenCases)('for %s, beyond that', async (name) => {
    const beyond = (family: 4 | 6) => formatBeyond(formatTable(planGoldenTable(name, family)), base[family])
    await expect(beyond(4) + beyond(6)).toMatchFileSnapshot(`${name}/nftables.nft`)
  })
})
