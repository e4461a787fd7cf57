// Repeats a request when its answer may have changed: one at a time, with a pause between two.

export interface RefresherOptions<Answer> {
  readonly ask: (signal: AbortSignal) => Promise<Answer>
  readonly answered: (answer: Answer) => void
  readonly failed: (error: unknown) => void
}

export class Refresher<Answer> {
  readonly #pauseMs: number
  readonly #options: RefresherOptions<Answer>
  readonly #closed = new AbortController()
  #timer: ReturnType<typeof setTimeout> | undefined
  #isAsking = false
  #isStale = false

  /** Asks at once. */
  constructor(pauseMs: number, options: RefresherOptions<Answer>) {
    this.#pauseMs = pauseMs
    this.#options = options
    void this.#ask()
  }

  /** The answer may have changed. */
  again(): void {
    this.#isStale = true
    if (this.#isAsking || this.#timer !== undefined || this.#closed.signal.aborted) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      void this.#ask()
    }, this.#pauseMs)
  }

  /** Later answers are ignored. */
  close(): void {
    clearTimeout(this.#timer)
    this.#closed.abort()
  }

  async #ask(): Promise<void> {
    const { ask, answered, failed } = this.#options
    const { signal } = this.#closed
    this.#isAsking = true
    this.#isStale = false
    try {
      const answer = await ask(signal)
      if (!signal.aborted) answered(answer)
    } catch (error) {
      if (!signal.aborted) failed(error)
    }
    this.#isAsking = false
    if (this.#isStale) this.again()
  }
}
