// Lists of backends that are read by their keys, as those of large clusters are.

import { asBytes } from '../../src/lib/ip.ts'
import { execFileSync } from 'node:child_process'
import fc from 'fast-check'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { NftablesDriver } from '../../src/nftables/driver.ts'
import { unshareNetwork } from '../../src/system/netns.ts'
import { systemClock } from '../../src/lib/clock.ts'
import type { ServicePortView } from '../../src/model/types.ts'
import { nftablesPlanner } from '../../src/modes/nftables/plan/planner.ts'
import { schemaFor } from '../../src/modes/nftables/plan/schema.ts'
import { TableProgrammer } from '../../src/table-sync/table-programmer.ts'
import { integerField } from '../../src/nftables/fields.ts'
import { nftFamily } from '../../src/nftables/language.ts'
import type { FieldType } from '../../src/nftables/types.ts'
import type { TableDriver } from '../../src/nftables/table-driver.ts'
import { aNodeView, arbitraryView } from '../support/arbitrary-views.ts'
import { arbitraryFields } from '../support/arbitrary-nftables.ts'

const isRoot = process.getuid?.() === 0

beforeAll(() => {
  if (isRoot) unshareNetwork()
})

afterEach(() => {
  if (isRoot) execFileSync('nft', ['flush', 'ruleset'])
})

describe.skipIf(!isRoot).each([4, 6] as const)('lists of IPv%d, read by keys (needs root)', (family) => {
  const { endpoints } = schemaFor(family)
  const openDriver = () => new NftablesDriver({ family: nftFamily(family), table: nftablesPlanner.table })

  it('gives the elements that are there, wherever others are missing', () => {
    const driver = openDriver()
    const [frontend] = fc.sample(arbitraryFields(endpoints.key.slice(0, -1)), { numRuns: 1, seed: 1 })
    const [data] = fc.sample(arbitraryFields(endpoints.data as FieldType[]), { numRuns: 1, seed: 1 })
    const elements = Array.from({ length: 1000 }, (_, i) => ({
      key: asBytes(frontend! + integerField(i)),
      data: data!,
    }))
    const isMissing = (i: number) => i === 0 || i === 999 || (i > 120 && i < 140) || i % 97 === 0
    const present = elements.filter((_, i) => !isMissing(i))
    driver.apply([
      { op: 'addTable', comment: undefined },
      { op: 'addSet', set: endpoints },
      { op: 'addElements', set: endpoints, elements: present },
    ])
    const keys = elements.map(({ key }) => key)
    expect(driver.readKeys(endpoints, keys)).toEqual(present)
    expect(driver.readKeys(endpoints, [])).toEqual([])
    expect(driver.readKeys(endpoints, [keys[0]!])).toEqual([])
    expect(driver.readKeys({ ...endpoints, name: 'no-such-map' }, keys)).toEqual([])
    driver.close()
  })

  const node = aNodeView({ family })
  const views = (seed: number): ServicePortView[] =>
    Array.from(
      { length: 8 },
      (_, index) => fc.sample(arbitraryView(family, index), { numRuns: 1, seed: seed + index })[0]!,
    )

  /** However few there are. */
  function byKeys(driver: NftablesDriver): TableDriver {
    return {
      apply: (ops) => driver.apply(ops),
      read: () => {
        throw new Error('the table is read whole')
      },
      readElements: (set) => driver.readElements(set),
      parts: { ...driver.parts, many: 0 },
      close: () => driver.close(),
    }
  }

  it('a restart finds everything, changes nothing, and follows what has changed meanwhile', async () => {
    const programmerFor = (driver: TableDriver) =>
      new TableProgrammer({ planner: nftablesPlanner, driver, clock: systemClock })
    const driver = openDriver()
    let programmer = programmerFor(driver)
    let before = views(0)
    await programmer.syncAll(node, before)
    for (let seed = 100; seed < 1000; seed += 100) {
      const after = views(seed)
      const changes = after.map((view, i) => ({ name: view.name, before: before[i], after: view }))
      await programmer.sync(node, changes)
      await programmer.syncAll(node, after)
      const restarted = programmerFor(byKeys(driver))
      expect((await restarted.syncAll(node, after)).transactions, `seed ${seed}`).toBe(0)
      // Half of them went, and others came, while no proxy watched.
      const later = [...after.slice(0, 4), ...views(seed + 50).slice(4)]
      await restarted.syncAll(node, later)
      expect((await programmerFor(driver).syncAll(node, later)).transactions, `seed ${seed}, later`).toBe(0)
      before = later
      programmer = restarted
    }
    driver.close()
  })
})
