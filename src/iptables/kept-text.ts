// A text that is made while it is read, and can be read again.

export class KeptText implements Iterable<string> {
  readonly #rest: Iterator<string>
  readonly #kept: string[] = []

  constructor(pieces: Iterable<string>) {
    this.#rest = pieces[Symbol.iterator]()
  }

  *[Symbol.iterator](): Generator<string> {
    for (let i = 0; ; i++) {
      if (i === this.#kept.length) {
        const next = this.#rest.next()
        if (next.done === true) return
        this.#kept.push(next.value)
      }
      yield this.#kept[i]!
    }
  }

  /** What was made so far. */
  get soFar(): string {
    return this.#kept.join('')
  }
}
