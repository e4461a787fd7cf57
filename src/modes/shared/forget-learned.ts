// Dynamic maps remember what packets have noted, true or not.

import type { Steps } from '../../lib/steps.ts'
import type { Learned } from '../../nftables/fragment.ts'
import type { TableDriver } from '../../nftables/table-driver.ts'
import { applyCounted } from './apply-counted.ts'
import type { SyncCount } from './sync-count.ts'

/** Deletes what packets have noted and what is no longer true. */
export function* forgettingLearned(driver: TableDriver, learned: readonly Learned[], stats: SyncCount): Steps<void> {
  for (const { set, allowedData } of learned) {
    const allowed = new Set(allowedData)
    const elements = driver.readElements(set).filter(({ data }) => !allowed.has(data ?? ''))
    if (elements.length > 0) applyCounted(driver, [{ op: 'deleteElements', set, elements }], stats)
    yield
  }
}
