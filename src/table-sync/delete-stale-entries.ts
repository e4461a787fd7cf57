// Deletes affinity entries that packets wrote and whose backend is no longer allowed.

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

/** Deletes the entries with other data than the map allows. Returns the maps that may have more of them. */
export function* deletingStaleEntries(
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
    // The kernel may list an element twice while a map changes, and then leaves another one out.
    if (elements.length > 0 || new Set(all.map(({ key }) => key)).size < all.length) unsure.push(each)
    yield
  }
  return unsure
}

/**
 * Deletes the elements that still exist: any of them may expire at any moment. Older kernels refuse to delete a missing element, so
 * the transaction adds each one first, which changes nothing where it exists. False: one of them changed in between, and the kernel
 * deleted none.
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

/** The element expired after it was added, or exists with another value. */
const CHANGED: readonly string[] = ['ENOENT', 'EEXIST', 'EBUSY']
