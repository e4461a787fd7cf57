// Dynamic maps remember what packets have noted, true or not.

import { asBytes } from '../lib/ip.ts'
import { KernelError } from '../lib/errors.ts'
import type { Steps } from '../lib/steps.ts'
import type { DynamicMap } from '../nftables/fragment.ts'
import type { TableDriver } from '../nftables/table-driver.ts'
import type { Element, NftSet, Op } from '../nftables/types.ts'
import { applyCounted } from './apply-counted.ts'
import type { WriteLog } from '../reconcile/write-log.ts'

/** Elements of one transaction: some milliseconds. On older kernels each is two messages. */
const AT_ONCE = 2000
const AT_ONCE_ON_OLDER = 500

interface Work {
  readonly driver: TableDriver
  readonly set: NftSet
  readonly stats: Pick<WriteLog, 'count'>
}

/** Deletes what packets have noted and what is no longer true. Returns the maps in which there may be more of it. */
export function* forgettingLearned(
  driver: TableDriver,
  dynamicMaps: readonly DynamicMap[],
  stats: Pick<WriteLog, 'count'>,
): Steps<DynamicMap[]> {
  const unsure: DynamicMap[] = []
  for (const each of dynamicMaps) {
    const { set, allowedData } = each
    const allowed = new Set(allowedData)
    const all = driver.readingElements === undefined ? driver.readElements(set) : yield* driver.readingElements(set)
    const elements = all.filter(({ data }) => !allowed.has(data ?? asBytes('')))
    const atOnce = driver.destroys === true ? AT_ONCE : AT_ONCE_ON_OLDER
    for (let first = 0; first < elements.length; first += atOnce) {
      deletePresent({ driver, set, stats }, elements.slice(first, first + atOnce))
      yield
    }
    // A list with an element twice lacks another one.
    if (elements.length > 0 || new Set(all.map(({ key }) => key)).size < all.length) unsure.push(each)
    yield
  }
  return unsure
}

/**
 * Deletes those that are still there: any of them may expire at any moment. Older kernels refuse to delete what is not there, so
 * each is added first, which changes nothing where it is. False: one of them changed in between, and all of them are left.
 */
function deletePresent({ driver, set, stats }: Work, elements: readonly Element[]): boolean {
  if (driver.destroys === true) {
    applyCounted(driver, [{ op: 'destroyElements', set, elements }], stats)
    return true
  }
  const ops = elements.flatMap((element): Op[] => [
    { op: 'addElements', set, elements: [element] },
    { op: 'deleteElements', set, elements: [element] },
  ])
  try {
    applyCounted(driver, ops, stats)
    return true
  } catch (error) {
    if (error instanceof KernelError && CHANGED.includes(error.errno)) return false
    throw error
  }
}

/** It has expired after it was added, or was there with another value. */
const CHANGED: readonly string[] = ['ENOENT', 'EEXIST', 'EBUSY']
