// Session affinity: which backend a client's host came to last.

import type { HostKey } from '../wire/socket-address.ts'

/** What one service port remembers at most, as in the other modes. */
const LARGEST = 65_535

interface Entry {
  backend: string
  usedMs: number
}

export class AffinityTable {
  timeoutMs: number
  /** The one that was used longest ago first. */
  readonly #entries = new Map<HostKey, Entry>()

  constructor(timeoutMs: number) {
    this.timeoutMs = timeoutMs
  }

  get size(): number {
    return this.#entries.size
  }

  /** The backend of a client that came within the timeout. */
  find(client: HostKey, nowMs: number): string | undefined {
    const entry = this.#entries.get(client)
    if (entry === undefined) return undefined
    if (nowMs - entry.usedMs < this.timeoutMs) return entry.backend
    this.#entries.delete(client)
    return undefined
  }

  remember(client: HostKey, backend: string, nowMs: number): void {
    this.#entries.delete(client)
    this.#entries.set(client, { backend, usedMs: nowMs })
    this.#forgetOldest(nowMs)
  }

  forget(client: HostKey): void {
    this.#entries.delete(client)
  }

  /** Two at a time: faster than they can come. */
  #forgetOldest(nowMs: number): void {
    let budget = 2
    for (const [client, { usedMs }] of this.#entries) {
      const isOld = nowMs - usedMs >= this.timeoutMs
      if (budget-- === 0 || (!isOld && this.#entries.size <= LARGEST)) return
      this.#entries.delete(client)
    }
  }
}
