// How many system calls a change costs: the transaction, its acknowledgements, and what the kernel tells our own watch of it.
// A number that grows is a creep, and one that shrinks is to be written down here.

import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '../../src/lib/clock.ts'
import { ProblemLog } from '../../src/model/problems.ts'
import { ServiceModel } from '../../src/model/service-model.ts'
import { nftablesPlanner } from '../../src/modes/nftables/plan/planner.ts'
import { TableProgrammer } from '../../src/table-sync/table-programmer.ts'
import { openWatchedTables } from '../../src/nftables/watched-tables.ts'
import { countCalls } from '../../src/system/libc.ts'
import { unshareNetwork } from '../../src/system/netns.ts'
import { nodeView, service, slice } from '../support/kube-objects.ts'

const isRoot = process.getuid?.() === 0

beforeAll(() => {
  if (isRoot) unshareNetwork()
})

const node = nodeView()
const hosts = Array.from({ length: 10 }, (_, i) => `10.64.0.${i + 1}`)

describe.skipIf(!isRoot)('system calls of the nftables mode (needs root)', () => {
  test('a change costs these, whatever else there is', async () => {
    const few = await callsBeside(3)
    expect(few).toEqual({
      'an endpoint is replaced': 'send 1, recvfrom 2',
      'an endpoint goes': 'send 1, recvfrom 2',
      'the same is said again': '',
      'a hundred services change at once': 'send 1, recvfrom 2',
    })
    expect(await callsBeside(2000)).toEqual(few)
  })
})

async function callsBeside(more: number): Promise<Record<string, string>> {
  let foreign = 0
  const tables = openWatchedTables({ table: nftablesPlanner.table, families: [4], onForeignChange: () => foreign++ })
  const driver = tables.driver(4)
  const programmer = new TableProgrammer({ planner: nftablesPlanner, driver, clock: systemClock })
  const model = new ServiceModel({ node, problems: new ProblemLog(() => {}), allowExternalIPs: true, startedMs: 0 })
  const set = (i: number, addresses: readonly string[]) =>
    model.setSlice(slice(addresses, { name: `s${i}-1`, serviceName: `s${i}` }))
  const services = more + 100
  for (let i = 0; i < services; i++) {
    model.setService(service({ name: `s${i}`, clusterIPs: [`10.96.${i >> 8}.${i & 255}`], ports: [{}] }))
    set(i, hosts)
  }
  model.takeChanges()
  await programmer.syncAll(node, model.views())
  const callsOf = async (change: () => void) => {
    const counts = await countCalls(async () => {
      change()
      await programmer.sync(node, model.takeChanges())
      await programmer.finish()
      // The watch would hear of it in another turn of the event loop.
      await sleep(20)
    })
    return Array.from(counts, ([name, count]) => `${name} ${count}`).join(', ')
  }
  const replaced = [...hosts.slice(1), '10.65.0.1']
  // A set and a rule for so many endpoints, which come once.
  set(1, replaced.slice(1))
  await programmer.sync(node, model.takeChanges())
  // What the watch has heard of the above.
  while ((await countCalls(() => sleep(20))).size > 0);
  try {
    return {
      'an endpoint is replaced': await callsOf(() => set(0, replaced)),
      'an endpoint goes': await callsOf(() => set(0, replaced.slice(1))),
      'the same is said again': await callsOf(() => set(0, replaced.slice(1))),
      'a hundred services change at once': await callsOf(() => {
        for (let i = services - 100; i < services; i++) set(i, replaced)
      }),
    }
  } finally {
    expect(foreign).toBe(0)
    driver.apply([{ op: 'deleteTable' }])
    driver.close()
    tables.close()
  }
}
