// How many connections are open to each backend, from the notifications of the connection tracker, and from what it has when they begin.

import type { EndEvent } from '../conntrack/watch-ends.ts'
import { joinHostPort } from '../lib/ip.ts'

/** `6 10.1.0.5:8080`: the number of the protocol, and the backend. */
export type BackendKey = string

export function backendKey(protocol: number, ip: string, port: number): BackendKey {
  return `${protocol} ${joinHostPort(ip, port)}`
}

export interface Seen {
  /** Open connections, on average since the last look. */
  readonly open: number
  /** Connections that began since then. */
  readonly begun: number
}

/** Connections beyond these are not known: each takes memory while it is open. */
const MOST_OPEN = 262_144

interface Count {
  open: number
  begun: number
  /** Open connections, added up over the milliseconds since the last look. */
  area: number
  changedMs: number
}

export class OpenConnections {
  readonly #now: () => number
  readonly #counts = new Map<BackendKey, Count>()
  /** By the kernel's number of a connection. */
  readonly #open = new Map<number, Count>()
  #watched: ReadonlySet<BackendKey> = new Set()
  /** While the table is read: what is read may have ended since. */
  #ended: Set<number> | undefined
  #lookedMs: number

  constructor(now: () => number) {
    this.#now = now
    this.#lookedMs = now()
  }

  /** Counts for these backends, and for former ones while they have connections: they may come back. */
  watch(backends: ReadonlySet<BackendKey>): void {
    this.#watched = backends
    for (const [key, { open }] of this.#counts) if (open === 0 && !backends.has(key)) this.#counts.delete(key)
    for (const key of backends) {
      if (!this.#counts.has(key)) this.#counts.set(key, { open: 0, begun: 0, area: 0, changedMs: this.#now() })
    }
  }

  /** Some notifications were lost: what is open may have ended. Until the table is read, only what begins from now on counts. */
  forget(): void {
    this.#open.clear()
    for (const count of this.#counts.values()) this.#change(count, -count.open)
  }

  /** Has `read` read the connections that are open already. Notifications come in between. */
  async addOpen(read: (onOpen: (event: EndEvent) => void) => Promise<void>): Promise<void> {
    const ended = (this.#ended = new Set())
    try {
      await read(({ id, protocol, reply }) => {
        if (!ended.has(id)) this.#begin(id, backendKey(protocol, reply.src, reply.sport))
      })
    } finally {
      this.#ended = undefined
    }
  }

  add({ kind, id, protocol, reply }: EndEvent): void {
    if (kind === 'begun') {
      const count = this.#begin(id, backendKey(protocol, reply.src, reply.sport))
      if (count !== undefined) count.begun++
      return
    }
    this.#ended?.add(id)
    const count = this.#open.get(id)
    if (count === undefined) return
    this.#open.delete(id)
    this.#change(count, -1)
  }

  /** What was seen since the last look. */
  look(): ReadonlyMap<BackendKey, Seen> {
    const nowMs = this.#now()
    const passedMs = Math.max(1, nowMs - this.#lookedMs)
    this.#lookedMs = nowMs
    const seen = new Map<BackendKey, Seen>()
    for (const [key, count] of this.#counts) {
      this.#change(count, 0)
      if (this.#watched.has(key)) seen.set(key, { open: count.area / passedMs, begun: count.begun })
      count.area = 0
      count.begun = 0
    }
    return seen
  }

  /** Undefined: it does not count. */
  #begin(id: number, key: BackendKey): Count | undefined {
    const count = this.#counts.get(key)
    if (count === undefined || this.#open.size >= MOST_OPEN || this.#open.has(id)) return undefined
    this.#open.set(id, count)
    this.#change(count, 1)
    return count
  }

  #change(count: Count, by: number): void {
    const nowMs = this.#now()
    count.area += count.open * (nowMs - count.changedMs)
    count.changedMs = nowMs
    count.open += by
  }
}
