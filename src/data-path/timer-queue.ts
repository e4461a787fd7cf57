// Not a Map of due times in order of insertion, though that would be shorter: V8 walks over deleted entries to find the
// first one, which with many of them costs more than everything else.

interface Entry<T> {
  /** undefined when it was stopped. */
  item: T | undefined
  readonly dueMs: number
}

/** Stopped entries are swept when there are so many, and more than others. */
const SWEEP_FROM = 256

/** Things that time out after the same while. Starting and stopping cost the same however many wait. */
export class TimerQueue<T> {
  readonly durationMs: number
  readonly #onExpired: (item: T) => void
  readonly #entries = new Map<T, Entry<T>>()
  /** The next first, from #head on: all wait equally long. */
  #queue: Entry<T>[] = []
  #head = 0

  constructor(durationMs: number, onExpired: (item: T) => void) {
    this.durationMs = durationMs
    this.#onExpired = onExpired
  }

  /** Nothing is due before this. */
  get earliestMs(): number {
    return this.#queue[this.#head]?.dueMs ?? Infinity
  }

  /** Starts the time of an item, again if it waits already. */
  start(item: T, nowMs: number): void {
    this.stop(item)
    const entry = { item, dueMs: nowMs + this.durationMs }
    this.#entries.set(item, entry)
    this.#queue.push(entry)
  }

  stop(item: T): void {
    const entry = this.#entries.get(item)
    if (entry === undefined) return
    entry.item = undefined
    this.#entries.delete(item)
    this.#sweep()
  }

  /** Calls back for all that is due. An item that is started again meanwhile waits its whole time. */
  expire(nowMs: number): void {
    while (this.earliestMs <= nowMs) {
      const { item } = this.#queue[this.#head++]!
      if (item === undefined) continue
      this.#entries.delete(item)
      this.#onExpired(item)
    }
    this.#sweep()
  }

  #sweep(): void {
    const { length } = this.#queue
    if (length < SWEEP_FROM || length < 2 * this.#entries.size) return
    this.#queue = this.#queue.slice(this.#head).filter(({ item }) => item !== undefined)
    this.#head = 0
  }
}
