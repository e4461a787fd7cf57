// What packets have noted in dynamic maps and what is no longer true: deleted after a change, and looked for once more.
//
// A packet that got its endpoint before a change may note it after the change was seen to: on another CPU, or because a program
// of the machine had it in a queue.

import { KernelError } from '../lib/errors.ts'
import type { Clock } from '../lib/clock.ts'
import type { Steps } from '../lib/steps.ts'
import type { DynamicMap } from '../nftables/fragment.ts'
import type { TableDriver } from '../nftables/table-driver.ts'
import { forgettingLearned } from './forget-learned.ts'
import type { AffinityReports } from '../reconcile/programmer.ts'
import { WriteLog } from '../reconcile/write-log.ts'

export interface StaleEntriesOptions {
  readonly driver: TableDriver
  readonly clock: Clock
  /** Called when a map could not be looked at and is tried again, and when nothing that failed is left. */
  readonly reports?: AffinityReports | undefined
}

const AGAIN_MS = 1000
const LONGEST_PAUSE_MS = 30_000
/** Looks that find something, one after the other: then it is somebody else who writes it. */
const MOST_LOOKS = 10

interface Pending {
  readonly dynamicMap: DynamicMap
  /** So many there were. */
  readonly looks: number
  /** In a row. */
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

  /** After a change: `now` are the maps that it was about, `shrunk` those of them of which something is no longer true. */
  changed(before: readonly DynamicMap[], now: readonly DynamicMap[], shrunk: readonly DynamicMap[]): void {
    const latest = new Map(now.map((dynamicMap) => [dynamicMap.set.name, dynamicMap]))
    for (const { set } of before) if (!latest.has(set.name)) this.#pending.delete(set.name)
    for (const [name, dynamicMap] of latest) {
      const pending = this.#pending.get(name)
      if (pending !== undefined) this.#pending.set(name, { ...pending, dynamicMap })
    }
    for (const dynamicMap of shrunk) this.#look(dynamicMap)
  }

  /** After a comparison, of all maps that there are; it may have found something to change. */
  compared(all: readonly DynamicMap[], { isChanged }: { readonly isChanged: boolean }): void {
    this.#pending.clear()
    for (const dynamicMap of all) this.#look(dynamicMap, isChanged ? 0 : 1)
  }

  /** Looks at those that are due. Returns the time until others are. */
  *cleaning(stats: Pick<WriteLog, 'count'> = new WriteLog()): Steps<number | undefined> {
    const { driver, clock, reports } = this.#options
    for (const [name, pending] of this.#pending) {
      if (pending.dueMs > clock.monotonicNow()) continue
      this.#pending.delete(name)
      const { dynamicMap } = pending
      try {
        const unsure = yield* forgettingLearned(driver, [dynamicMap], stats)
        if (pending.looks === 0 || (unsure.length > 0 && pending.looks < MOST_LOOKS)) this.#lookAgain(pending)
      } catch (error) {
        this.#failed(pending, error)
      }
    }
    const left = [...this.#pending.values()]
    if (!left.some(({ failures }) => failures > 0)) reports?.onMended()
    if (left.length === 0) return undefined
    return Math.max(0, Math.min(...left.map(({ dueMs }) => dueMs)) - clock.monotonicNow())
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
    // A map that is gone remembers nothing.
    if (error instanceof KernelError && error.errno === 'ENOENT') return
    const pauseMs = Math.min(AGAIN_MS * 2 ** pending.failures, LONGEST_PAUSE_MS)
    const dueMs = this.#options.clock.monotonicNow() + pauseMs
    this.#pending.set(pending.dynamicMap.set.name, { ...pending, failures: pending.failures + 1, dueMs })
    this.#options.reports?.onFailed(error, pauseMs)
  }
}
