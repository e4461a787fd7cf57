// One log line for problems of one kind, however many values of an object have it: a tenant writes the values, and an operator
// reads the lines.

export class Summary {
  #first: string | undefined
  #count = 0

  /** The message is made for the first one only. */
  add(message: () => string): void {
    this.#first ??= message()
    this.#count++
  }

  /** Adds the line, if there is a problem. */
  addTo(problems: string[]): void {
    if (this.#first === undefined) return
    problems.push(this.#count === 1 ? this.#first : `${this.#first} (and ${this.#count - 1} more)`)
  }
}
