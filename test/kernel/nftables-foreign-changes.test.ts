// Whatever others do to our table, one comparison makes it what it was.

import { sample } from 'fast-check'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { NftablesDriver } from '../../src/nftables/driver.ts'
import { unshareNetwork } from '../../src/system/netns.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { nftablesPlanner } from '../../src/modes/nftables/plan/planner.ts'
import { TableProgrammer } from '../../src/table-sync/table-programmer.ts'
import { aNodeView, arbitraryView } from '../support/arbitrary-views.ts'
import { isRoot, listWithNft, nft } from '../support/nft.ts'

const views = [0, 1, 2, 3, 4, 5, 6, 7].map(
  (index) => sample(arbitraryView(4, index), { numRuns: 1, seed: index + 1 })[0]!,
)
const table = 'ip kube-proxy'

beforeAll(() => {
  if (isRoot) unshareNetwork()
})

describe.skipIf(!isRoot)('await TableProgrammer.syncAll() after another program was at our table (needs root)', () => {
  let driver: NftablesDriver
  let programmer: TableProgrammer

  beforeEach(async () => {
    driver = new NftablesDriver({ family: 'ip', table: nftablesPlanner.table })
    programmer = new TableProgrammer({ planner: nftablesPlanner, driver, clock: systemClock })
    await programmer.syncAll(aNodeView(), views)
  })
  afterEach(() => {
    driver.close()
    nft('flush', 'ruleset')
  })

  it.each([
    `flush table ${table}`,
    `delete chain ${table} nat-prerouting`,
    `flush set ${table} served-ips; flush map ${table} service-endpoints`,
    `insert rule ${table} services drop`,
    `add chain ${table} filter-forward { policy drop; }`,
    `add table ${table} { flags dormant; }`,
    `add chain ${table} evil { type filter hook forward priority -5; policy drop; }`,
    `add set ${table} hosts { type ether_addr; elements = { 02:00:00:00:00:01 }; }; insert rule ${table} services ether saddr @hosts drop`,
    `add set ${table} marks { type mark; elements = { 1 }; }; insert rule ${table} services meta mark @marks drop`,
    `add chain ${table} x; add chain ${table} y; add map ${table} m { type ipv4_addr : verdict; elements = { 10.0.0.1 : goto y, 10.0.0.2 : drop }; }; ` +
      `add rule ${table} x ip daddr vmap @m; insert rule ${table} services jump x`,
  ])('undoes `%s`', async (command) => {
    const before = sortedLines()
    nft(command)
    expect(sortedLines()).not.toEqual(before)
    await programmer.syncAll(aNodeView(), views)
    expect(sortedLines()).toEqual(before)
    expect((await programmer.syncAll(aNodeView(), views)).transactions).toBe(0)
  })
})

/** nft lists in the order of creation, and as many elements per line as fit. */
function sortedLines(): string[] {
  return listWithNft()
    .split(/\n|, /)
    .map((line) => line.replace(/elements = \{|[{},]/g, '').trim())
    .toSorted()
}
