// The largest recent value. The largest since the start would say little after a year.

const WINDOW_MS = 5 * 60_000

/** Over the window that is under way and the one before it. */
export class Longest {
  readonly #now: () => number
  #sinceMs: number
  #current = 0
  #before = 0

  constructor(now: () => number) {
    this.#now = now
    this.#sinceMs = now()
  }

  add(value: number): void {
    this.#turnPage()
    this.#current = Math.max(this.#current, value)
  }

  get value(): number {
    this.#turnPage()
    return Math.max(this.#current, this.#before)
  }

  #turnPage(): void {
    const windows = Math.floor((this.#now() - this.#sinceMs) / WINDOW_MS)
    if (windows === 0) return
    this.#before = windows === 1 ? this.#current : 0
    this.#current = 0
    this.#sinceMs += windows * WINDOW_MS
  }
}
