import { expect, test } from 'vitest'
import { aNodeView } from '../../test/support/arbitrary-views.ts'
import type { ServicePortView } from '../model/types.ts'
import type { Programmer, SyncStats } from '../reconcile/programmer.ts'
import { OneAtATime } from './one-at-a-time.ts'

const STATS: SyncStats = { transactions: 0, operations: 0, bytes: 0 }
const node = aNodeView()

/** Notes what is done; a comparison ends when the test says so. */
class Slow implements Programmer {
  readonly done: string[] = []
  readonly ends: ((error?: Error) => void)[] = []

  sync(): SyncStats {
    this.done.push('sync')
    return STATS
  }

  syncAll(_: unknown, views: Iterable<ServicePortView>): Promise<SyncStats> {
    this.done.push(`compare ${[...views].length}`)
    return new Promise((resolve, reject) =>
      this.ends.push((error) => (error === undefined ? resolve(STATS) : reject(error))),
    )
  }

  close(): void {}
}

test('a change waits for the comparison that is under way, and one that is alone is done at once', async () => {
  const slow = new Slow()
  const programmer = new OneAtATime(slow)
  const views: ServicePortView[] = []
  const comparison = programmer.syncAll(node, views)
  const change = programmer.sync(node, [])
  const second = programmer.syncAll(node, views)
  // What comes later is not for the second.
  views.push({} as ServicePortView)
  expect(slow.done).toEqual(['compare 0'])
  slow.ends[0]!()
  await comparison
  await change
  expect(slow.done).toEqual(['compare 0', 'sync', 'compare 0'])
  slow.ends[1]!()
  await second
  expect(programmer.sync(node, [])).toBe(STATS)
})

test('a comparison that fails does not keep others from their turn', async () => {
  const slow = new Slow()
  const programmer = new OneAtATime(slow)
  const comparison = programmer.syncAll(node, [])
  const change = programmer.sync(node, [])
  slow.ends[0]!(new Error('refused'))
  await expect(comparison).rejects.toThrow('refused')
  expect(await change).toBe(STATS)
})
