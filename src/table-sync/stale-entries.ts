// What packets have noted in dynamic maps and what is no longer true: deleted after a change, and looked for once more.
//
// A packet that got its endpoint before a change may note it after the change was seen to: on another CPU, or because a program
// of the machine had it in a queue.

import { KernelError } from '../lib/errors.ts'
import type { Clock, Timer } from '../lib/clock.ts'
import type { InOrder } from '../lib/in-order.ts'
import { inTurns, type Steps } from '../lib/steps.ts'
import type { DynamicMap } from '../nftables/fragment.ts'
import type { TableDriver } from '../nftables/table-driver.ts'
import { forgettingLearned } from './forget-learned.ts'
import { SyncCount } from './sync-count.ts'

export interface StaleEntriesOptions {
  readonly driver: TableDriver
  readonly clock: Clock
  /** Absent: each map is looked at once, and an error is the caller's. */
  readonly later?: LaterLooks | undefined
}

export interface LaterLooks {
  /** Nothing else is written meanwhile. */
  readonly order: InOrder
  /** It is tried again. */
  readonly onFailed: (error: unknown, retryInMs: number) => void
  /** Nothing that failed is left. */
  readonly onMended: () => void
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
  #timer: Timer | undefined
  #isClosed = false

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

  /** Looks at those that are due. */
  *cleaning(stats: Pick<SyncCount, 'count'> = new SyncCount()): Steps<void> {
    const { driver, clock, later } = this.#options
    for (const [name, pending] of this.#pending) {
      if (pending.dueMs > clock.monotonicNow()) continue
      this.#pending.delete(name)
      const { dynamicMap } = pending
      if (later === undefined) {
        yield* forgettingLearned(driver, [dynamicMap], stats)
        continue
      }
      try {
        const unsure = yield* forgettingLearned(driver, [dynamicMap], stats)
        if (pending.looks === 0 || (unsure.length > 0 && pending.looks < MOST_LOOKS)) this.#lookAgain(pending)
      } catch (error) {
        this.#failed(pending, error, later)
      }
    }
    if (![...this.#pending.values()].some(({ failures }) => failures > 0)) later?.onMended()
    this.#schedule()
  }

  close(): void {
    this.#isClosed = true
    this.#timer?.cancel()
  }

  #look(dynamicMap: DynamicMap, looks = 0): void {
    const dueMs = this.#options.clock.monotonicNow()
    this.#pending.set(dynamicMap.set.name, { dynamicMap, looks, failures: 0, dueMs })
  }

  #lookAgain({ dynamicMap, looks }: Pending): void {
    const dueMs = this.#options.clock.monotonicNow() + AGAIN_MS
    this.#pending.set(dynamicMap.set.name, { dynamicMap, looks: looks + 1, failures: 0, dueMs })
  }

  #failed(pending: Pending, error: unknown, { onFailed }: LaterLooks): void {
    // A map that is gone remembers nothing.
    if (error instanceof KernelError && error.errno === 'ENOENT') return
    const pauseMs = Math.min(AGAIN_MS * 2 ** pending.failures, LONGEST_PAUSE_MS)
    const dueMs = this.#options.clock.monotonicNow() + pauseMs
    this.#pending.set(pending.dynamicMap.set.name, { ...pending, failures: pending.failures + 1, dueMs })
    onFailed(error, pauseMs)
  }

  #schedule(): void {
    const { clock, later } = this.#options
    this.#timer?.cancel()
    this.#timer = undefined
    const dueMs = Math.min(...Array.from(this.#pending.values(), (pending) => pending.dueMs))
    if (later === undefined || this.#isClosed || dueMs === Infinity) return
    this.#timer = clock.setTimeout(() => {
      void later.order.do(() => (this.#isClosed ? undefined : inTurns(this.cleaning())))
    }, dueMs - clock.monotonicNow())
  }
}
