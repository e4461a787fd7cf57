// How many connections are open to each backend, from the notifications of the connection tracker. Those that are open already when it
// begins do not count.

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
  #lookedMs: number

  constructor(now: () => number) {
    this.#now = now
    this.#lookedMs = now()
  }

  /** Counts for these backends and no others. */
  watch(backends: ReadonlySet<BackendKey>): void {
    for (const key of this.#counts.keys()) if (!backends.has(key)) this.#counts.delete(key)
    for (const key of backends) {
      if (!this.#counts.has(key)) this.#counts.set(key, { open: 0, begun: 0, area: 0, changedMs: this.#now() })
    }
  }

  /** Some notifications were lost: what is open may have ended. Counts only what begins from now on. */
  forget(): void {
    this.#open.clear()
    for (const count of this.#counts.values()) this.#change(count, -count.open)
  }

  add({ kind, id, protocol, reply }: EndEvent): void {
    if (kind === 'begun') return this.#begin(id, backendKey(protocol, reply.src, reply.sport))
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
    return new Map(
      Array.from(this.#counts, ([key, count]) => {
        this.#change(count, 0)
        const seen = { open: count.area / passedMs, begun: count.begun }
        count.area = 0
        count.begun = 0
        return [key, seen]
      }),
    )
  }

  #begin(id: number, key: BackendKey): void {
    const count = this.#counts.get(key)
    if (count === undefined || this.#open.size >= MOST_OPEN || this.#open.has(id)) return
    this.#open.set(id, count)
    count.begun++
    this.#change(count, 1)
  }

  #change(count: Count, by: number): void {
    const nowMs = this.#now()
    count.area += count.open * (nowMs - count.changedMs)
    count.changedMs = nowMs
    count.open += by
  }
}
