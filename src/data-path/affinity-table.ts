// The last backend of each client. With session affinity a client is a host; for UDP it is a host and a port.

/** The other modes keep as many hosts for a service port. */
const MIN_CLIENTS = 65_535

type Key = number | string

interface Entry {
  readonly backend: string
  readonly usedMs: number
}

/** Two halves, of which the older is dropped as a whole: that costs nothing for each client. */
export class AffinityTable {
  timeoutMs: number
  readonly #minClients: number
  #recent = new Map<Key, Entry>()
  #older = new Map<Key, Entry>()
  #startedMs = 0

  /** Keeps at least `minClients` and at most twice as many; the oldest are dropped first. */
  constructor(timeoutMs: number, minClients: number = MIN_CLIENTS) {
    this.timeoutMs = timeoutMs
    this.#minClients = minClients
  }

  get size(): number {
    return this.#recent.size + this.#older.size
  }

  /** The backend of a client that came within the timeout. */
  find(client: Key, nowMs: number): string | undefined {
    return this.#entry(client, nowMs)?.backend
  }

  /** That backend with the time until the entry expires. */
  findAffinity(client: Key, nowMs: number): { readonly backend: string; readonly leftMs: number } | undefined {
    const entry = this.#entry(client, nowMs)
    return entry && { backend: entry.backend, leftMs: entry.usedMs + this.timeoutMs - nowMs }
  }

  remember(client: Key, backend: string, nowMs: number): void {
    if (nowMs - this.#startedMs >= this.timeoutMs || this.#recent.size >= this.#minClients) {
      this.#older = this.#recent
      this.#recent = new Map()
      this.#startedMs = nowMs
    }
    this.#older.delete(client)
    this.#recent.set(client, { backend, usedMs: nowMs })
  }

  forget(client: Key): void {
    this.#recent.delete(client)
    this.#older.delete(client)
  }

  #entry(client: Key, nowMs: number): Entry | undefined {
    const entry = this.#recent.get(client) ?? this.#older.get(client)
    return entry !== undefined && nowMs - entry.usedMs < this.timeoutMs ? entry : undefined
  }
}
