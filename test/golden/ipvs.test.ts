// One input, and all that the ipvs mode makes of it. After a wanted change: npm run golden, and review the difference.

import { expect, it } from 'vitest'
import type { Family } from '../../src/lib/ip.ts'
import { formatTable } from '../../src/nftables/format.ts'
import { planGoldenIpvs } from '../support/golden-ipvs.ts'
import { goldenCases } from '../support/golden-tables.ts'

it.each(goldenCases)('virtual servers, addresses and rules for %s', async (name) => {
  await expect((await print(name, 4)) + (await print(name, 6))).toMatchFileSnapshot(`${name}/ipvs.txt`)
})

async function print(name: string, family: Family): Promise<string> {
  const { servers, addresses, table } = await planGoldenIpvs(name, family)
  return `# IPv${family}: ipvsadm -Sn\n${servers}\n# kube-ipvs0\n${addresses.join('\n')}\n\n${formatTable(table)}\n`
}
