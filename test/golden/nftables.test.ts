// One input, the canonical text of the tables. After a wanted change: npm run golden, and review the difference.

import { readdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { systemClock } from '../../src/lib/clock.ts'
import type { Family } from '../../src/lib/ip.ts'
import { nftablesMode } from '../../src/modes/nftables/mode.ts'
import { NftablesProgrammer } from '../../src/proxy/nftables-programmer.ts'
import { applyOps } from '../../src/state/nftables/apply-ops.ts'
import { formatTable } from '../../src/state/nftables/format.ts'
import { nftFamily } from '../../src/state/nftables/language.ts'
import type { Op, Table } from '../../src/state/nftables/types.ts'
import { node as addresses } from '../support/addresses.ts'
import { aNodeView, cidr } from '../support/arbitrary-views.ts'
import { viewsFromYaml } from '../support/planned-views.ts'

const folder = new URL('.', import.meta.url).pathname
const cases = readdirSync(folder, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map((entry) => entry.name)

function planText(family: Family, input: string): string {
  let table: Table | undefined
  const driver = {
    apply(ops: readonly Op[]) {
      table = applyOps(nftFamily(family), nftablesMode.table, table, ops)
      return { bytes: 0 }
    },
    read: () => table,
    readElements: () => [],
    close() {},
  }
  const node = aNodeView({
    family,
    nodeName: addresses.name,
    nodeIp: addresses.ip[family],
    localDetector: { kind: 'cidr', cidrs: [cidr(family === 4 ? '10.1.0.0/16' : 'fd01::/48')] },
    nodePortAddresses: { kind: 'only', addresses: [addresses.ip[family]] },
    serviceCidrs: [cidr(family === 4 ? '10.2.0.0/16' : 'fd02::/112')],
  })
  new NftablesProgrammer({ planner: nftablesMode, driver, clock: systemClock }).syncAll(
    node,
    viewsFromYaml(input, node),
  )
  return formatTable(table!)
}

describe('the tables of the nftables mode', () => {
  it.each(cases)('for %s', async (name) => {
    const input = `${folder}${name}/input.yaml`
    await expect(planText(4, input) + planText(6, input)).toMatchFileSnapshot(`${name}/nftables.nft`)
  })
})
