// The Go kube-proxy adds to whatever table it finds under its name, so that a node can go back to it. That works only while
// nothing of ours has a name of its own with another definition.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { sample } from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { NftablesDriver } from '../../src/nftables/driver.ts'
import { unshareNetwork } from '../../src/system/netns.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { silentLogger } from '../../src/lib/log.ts'
import { removeLeftovers } from '../../src/modes/nftables/remove-leftovers.ts'
import { nftablesPlanner } from '../../src/modes/nftables/plan/planner.ts'
import { TableProgrammer } from '../../src/table-sync/table-programmer.ts'
import { nftFamily } from '../../src/nftables/language.ts'
import { aNodeView, arbitraryView } from '../support/arbitrary-views.ts'
import { isRoot, listWithNft, loadWithNft } from '../support/nft.ts'

const tablesOfGo = readFileSync(join(import.meta.dirname, '../e2e/fixtures/kube-proxy/nftables/tables.nft'), 'utf8')

beforeAll(() => {
  if (isRoot) unshareNetwork()
})

describe.skipIf(!isRoot)('the names in our tables (needs root)', () => {
  const open = () =>
    ([4, 6] as const).map((family) => {
      const driver = new NftablesDriver({ family: nftFamily(family), table: nftablesPlanner.table })
      const programmer = new TableProgrammer({ planner: nftablesPlanner, driver, clock: systemClock })
      const views = [0, 1, 2, 3, 4, 5, 6, 7].map(
        (index) => sample(arbitraryView(family, index), { numRuns: 1, seed: index })[0]!,
      )
      return { driver, sync: () => programmer.syncAll(aNodeView({ family }), views) }
    })

  it('do not stand in the way of the Go kube-proxy, nor its names in ours afterwards', async () => {
    const sides = open()
    for (const { sync } of sides) await sync()
    const ours = listWithNft()
    loadWithNft(tablesOfGo)
    expect(listWithNft()).toContain('map service-ips {')
    for (const { sync } of sides) expect((await sync()).transactions).toBe(1)
    expect(sortedLines(listWithNft())).toEqual(sortedLines(ours))
    for (const { driver } of sides) driver.close()
  })

  it('are no more in a table that the Go kube-proxy has taken over and --cleanup-leftovers has tidied', async () => {
    loadWithNft(`flush ruleset\n${tablesOfGo}`)
    const theirs = namesIn(listWithNft())
    loadWithNft('flush ruleset')
    const sides = open()
    for (const { sync } of sides) await sync()
    expect(() => removeLeftovers(silentLogger)).toThrow('kube-proxy has not taken it over')
    // It writes its own chains again.
    const flushes = theirs.filter((name) => name.startsWith('chain') && namesIn(listWithNft()).includes(name))
    loadWithNft(
      flushes.flatMap((name) => ['ip', 'ip6'].map((ip) => `flush chain ${ip} kube-proxy ${name.slice(6)}\n`)).join('') +
        tablesOfGo,
    )
    expect(namesIn(listWithNft()).length).toBeGreaterThan(theirs.length)
    removeLeftovers(silentLogger)
    expect(namesIn(listWithNft())).toEqual(theirs)
    for (const { driver } of sides) driver.close()
  })
})

/** Of chains, sets and maps. */
function namesIn(listed: string): string[] {
  return [...listed.matchAll(/^\t((?:chain|set|map) \S+) \{/gm)].map(([, name]) => name!).toSorted()
}

/** nft lists in the order of creation. */
function sortedLines(listed: string): string[] {
  return listed.split('\n').toSorted()
}
