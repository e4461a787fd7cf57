// Returns memory to the system when the proxy has had nothing to do for a while.

import type { Clock, Timer } from '../lib/clock.ts'

export interface RestOptions {
  readonly giveBack: () => void
  /** The resident memory of this process, in bytes. */
  readonly memory: () => number
  readonly clock: Clock
}

/** The proxy is at rest when it has had no sync for so long. */
const QUIET_MS = 2000

/** Returns memory again when it has grown by this much since the last time. */
const GROWTH = 16 << 20

/** It takes some tens of milliseconds, and is not done more often than this. */
const PAUSE_MS = 60_000

/** One timer at most, and none while nothing happens: a proxy at rest does not wake up. */
export class Rest {
  readonly #options: RestOptions
  #timer: Timer | undefined
  #lastSyncMs = 0
  /** The memory that was left the last time, and when that was. */
  #left: { readonly bytes: number; readonly atMs: number } | undefined

  constructor(options: RestOptions) {
    this.#options = options
  }

  /** After each sync. */
  synced(): void {
    this.#lastSyncMs = this.#options.clock.monotonicNow()
    if (this.#timer === undefined) this.#arm(QUIET_MS)
  }

  stop(): void {
    this.#timer?.cancel()
  }

  #arm(delayMs: number): void {
    this.#timer = this.#options.clock.setTimeout(() => this.#look(), delayMs)
  }

  #look(): void {
    const { clock, memory, giveBack } = this.#options
    this.#timer = undefined
    const left = this.#left
    const dueMs = Math.max(this.#lastSyncMs + QUIET_MS, left === undefined ? 0 : left.atMs + PAUSE_MS)
    const waitMs = dueMs - clock.monotonicNow()
    if (waitMs > 0) {
      this.#arm(waitMs)
      return
    }
    if (left !== undefined && memory() < left.bytes + GROWTH) return
    giveBack()
    this.#left = { bytes: memory(), atMs: clock.monotonicNow() }
  }
}
