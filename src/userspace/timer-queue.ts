/** Things that time out after the same while. Starting and stopping cost the same however many wait. */
export class TimerQueue<T> {
  readonly durationMs: number
  readonly #onExpired: (item: T) => void
  /** When each is due, the next first: all wait equally long. */
  readonly #due = new Map<T, number>()
  /** Nothing is due before this. */
  #earliestMs = Infinity

  constructor(durationMs: number, onExpired: (item: T) => void) {
    this.durationMs = durationMs
    this.#onExpired = onExpired
  }

  get earliestMs(): number {
    return this.#earliestMs
  }

  /** Starts the time of an item, anew when it is waiting already. */
  start(item: T, nowMs: number): void {
    const dueMs = nowMs + this.durationMs
    this.#due.delete(item)
    this.#due.set(item, dueMs)
    if (dueMs < this.#earliestMs) this.#earliestMs = dueMs
  }

  stop(item: T): void {
    this.#due.delete(item)
  }

  /** Calls back for everything that is due. What is started again meanwhile waits its whole time. */
  expire(nowMs: number): void {
    if (nowMs < this.#earliestMs) return
    this.#earliestMs = Infinity
    for (const [item, dueMs] of this.#due) {
      if (dueMs > nowMs) {
        this.#earliestMs = Math.min(this.#earliestMs, dueMs)
        return
      }
      this.#due.delete(item)
      this.#onExpired(item)
    }
  }
}
