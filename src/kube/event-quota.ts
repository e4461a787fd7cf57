// Limits the Events about one object, as client-go does: who may write a Service could have every node write an Event for each of its
// changes.

/** So many at once, and then one in this time. */
const BURST = 25
const EVERY_MS = 5 * 60_000

export class EventQuota {
  /** By object: since when it would have all of them again, had there been none. Oldest first. */
  readonly #fullAtMs = new Map<string, number>()

  /** False: there were too many about this object. */
  take(object: string, nowMs: number): boolean {
    this.#forget(nowMs)
    const fullAtMs = Math.max(nowMs, this.#fullAtMs.get(object) ?? 0) + EVERY_MS
    if (fullAtMs > nowMs + BURST * EVERY_MS) return false
    this.#fullAtMs.delete(object)
    this.#fullAtMs.set(object, fullAtMs)
    return true
  }

  #forget(nowMs: number): void {
    for (const [object, fullAtMs] of this.#fullAtMs) {
      if (fullAtMs > nowMs) break
      this.#fullAtMs.delete(object)
    }
  }
}
