// Session affinity: which backend a client's host came to last.

import type { HostKey } from '../../../system/socket-address.ts'

/** How many clients a service port remembers at least, as in the other modes. */
const REMEMBERED = 65_535

interface Entry {
  readonly backend: string
  readonly usedMs: number
}

/** Two halves, of which the older is dropped as a whole: forgetting costs nothing for each client. */
export class AffinityTable {
  timeoutMs: number
  #recent = new Map<HostKey, Entry>()
  #older = new Map<HostKey, Entry>()
  #startedMs = 0

  constructor(timeoutMs: number) {
    this.timeoutMs = timeoutMs
  }

  get size(): number {
    return this.#recent.size + this.#older.size
  }

  /** The backend of a client that came within the timeout. */
  find(client: HostKey, nowMs: number): string | undefined {
    const entry = this.#recent.get(client) ?? this.#older.get(client)
    return entry !== undefined && nowMs - entry.usedMs < this.timeoutMs ? entry.backend : undefined
  }

  remember(client: HostKey, backend: string, nowMs: number): void {
    if (nowMs - this.#startedMs >= this.timeoutMs || this.#recent.size >= REMEMBERED) {
      this.#older = this.#recent
      this.#recent = new Map()
      this.#startedMs = nowMs
    }
    this.#older.delete(client)
    this.#recent.set(client, { backend, usedMs: nowMs })
  }

  forget(client: HostKey): void {
    this.#recent.delete(client)
    this.#older.delete(client)
  }
}
