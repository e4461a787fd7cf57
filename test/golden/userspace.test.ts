// One input, the canonical text of the tables. After a wanted change: npm run golden, and review the difference.

import { expect, it } from 'vitest'
import { formatTable } from '../../src/nftables/format.ts'
import { goldenCases } from '../support/golden-tables.ts'
import { planGoldenUserspace } from '../support/golden-userspace.ts'

it.each(goldenCases)('the tables of the userspace mode for %s', async (name) => {
  const text = formatTable(planGoldenUserspace(name, 4)) + formatTable(planGoldenUserspace(name, 6))
  await expect(text).toMatchFileSnapshot(`${name}/userspace.nft`)
})
