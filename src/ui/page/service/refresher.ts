// One question, asked again and again: never a second one while the first waits for its answer, however often something changes.

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

  /** The answer may be another one by now. */
  again(): void {
    this.#isStale = true
    if (this.#isAsking || this.#timer !== undefined || this.#closed.signal.aborted) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      void this.#ask()
    }, this.#pauseMs)
  }

  /** Whatever is answered from now on is not heard. */
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
