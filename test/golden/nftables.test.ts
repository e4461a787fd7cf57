// One input, the canonical text of the tables. After a wanted change: npm run golden, and review the difference.

import { describe, expect, it } from 'vitest'
import { formatTable } from '../../src/nftables/format.ts'
import { goldenCases, planGoldenTable } from '../support/golden-tables.ts'

describe('the tables of the nftables mode', () => {
  it.each(goldenCases)('for %s', async (name) => {
    const text = formatTable(planGoldenTable(name, 4)) + formatTable(planGoldenTable(name, 6))
    await expect(text).toMatchFileSnapshot(`${name}/nftables.nft`)
  })
})
