// Decides when to look for stale affinity entries: after a change, and once more a second later.
//
// A packet that got its endpoint before a change may write its entry after the first look: it was on another CPU, or a program of
// this machine had it in a queue.

import { KernelError } from '../lib/errors.ts'
import type { Clock } from '../lib/clock.ts'
import type { Steps } from '../lib/steps.ts'
import type { DynamicMap } from '../nftables/fragment.ts'
import type { TableDriver } from '../nftables/table-driver.ts'
import { deletingStaleEntries } from './delete-stale-entries.ts'
import type { AffinityReports } from '../reconcile/programmer.ts'
import { WriteLog } from '../reconcile/write-log.ts'

export interface StaleEntriesOptions {
  readonly driver: TableDriver
  readonly clock: Clock
  /** Called when reading a map fails, with the time of the next attempt, and when no failed map is left. */
  readonly reports?: AffinityReports | undefined
}

const AGAIN_MS = 1000
const LONGEST_PAUSE_MS = 30_000
/** After so many looks in a row that find stale entries, another program must be writing them. */
const MOST_LOOKS = 10

interface Pending {
  readonly dynamicMap: DynamicMap
  /** How many looks this map has had. */
  readonly looks: number
  /** How many attempts failed in a row. */
  readonly failures: number
  readonly dueMs: number
}

export class StaleEntries {
  readonly #options: StaleEntriesOptions
  /** Maps to look at, by name. */
  readonly #pending = new Map<string, Pending>()

  constructor(options: StaleEntriesOptions) {
    this.#options = options
  }

  /** After a change: `now` are the maps of the changed service ports, `shrunk` those of them that allow fewer backends. */
  changed(before: readonly DynamicMap[], now: readonly DynamicMap[], shrunk: readonly DynamicMap[]): void {
    const latest = new Map(now.map((dynamicMap) => [dynamicMap.set.name, dynamicMap]))
    for (const { set } of before) if (!latest.has(set.name)) this.#pending.delete(set.name)
    for (const [name, dynamicMap] of latest) {
      const pending = this.#pending.get(name)
      if (pending !== undefined) this.#pending.set(name, { ...pending, dynamicMap })
    }
    for (const dynamicMap of shrunk) this.#look(dynamicMap)
  }

  /** After a comparison: `all` are the maps of all service ports. `isChanged`: the comparison wrote something. */
  compared(all: readonly DynamicMap[], { isChanged }: { readonly isChanged: boolean }): void {
    this.#pending.clear()
    for (const dynamicMap of all) this.#look(dynamicMap, isChanged ? 0 : 1)
  }

  /** Cleans the maps that are due. Returns the milliseconds until the next one is. */
  *cleaning(stats: Pick<WriteLog, 'count'> = new WriteLog()): Steps<number | undefined> {
    const { driver, clock, reports } = this.#options
    for (const [name, pending] of this.#pending) {
      if (pending.dueMs > clock.monotonicNow()) continue
      this.#pending.delete(name)
      const { dynamicMap } = pending
      try {
        const unsure = yield* deletingStaleEntries(driver, [dynamicMap], stats)
        if (pending.looks === 0 || (unsure.length > 0 && pending.looks < MOST_LOOKS)) this.#lookAgain(pending)
      } catch (error) {
        this.#failed(pending, error)
      }
    }
    const left = [...this.#pending.values()]
    if (!left.some(({ failures }) => failures > 0)) reports?.onMended()
    if (left.length === 0) return undefined
    const nextMs = left.reduce((least, { dueMs }) => Math.min(least, dueMs), Infinity)
    return Math.max(0, nextMs - clock.monotonicNow())
  }

  #look(dynamicMap: DynamicMap, looks = 0): void {
    const dueMs = this.#options.clock.monotonicNow()
    this.#pending.set(dynamicMap.set.name, { dynamicMap, looks, failures: 0, dueMs })
  }

  #lookAgain({ dynamicMap, looks }: Pending): void {
    const dueMs = this.#options.clock.monotonicNow() + AGAIN_MS
    this.#pending.set(dynamicMap.set.name, { dynamicMap, looks: looks + 1, failures: 0, dueMs })
  }

  #failed(pending: Pending, error: unknown): void {
    // The map is gone, and its entries with it.
    if (error instanceof KernelError && error.errno === 'ENOENT') return
    const pauseMs = Math.min(AGAIN_MS * 2 ** pending.failures, LONGEST_PAUSE_MS)
    const dueMs = this.#options.clock.monotonicNow() + pauseMs
    this.#pending.set(pending.dynamicMap.set.name, { ...pending, failures: pending.failures + 1, dueMs })
    this.#options.reports?.onFailed(error, pauseMs)
  }
}
