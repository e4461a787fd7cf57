/** Does one thing after the other, in the order in which they are asked for. What is asked for alone begins at once. */
export class InOrder {
  /** The last that was asked for, while it has not ended. */
  #last: Promise<unknown> | undefined

  do<T>(work: () => Promise<T>): Promise<T>
  do<T>(work: () => T | Promise<T>): T | Promise<T>
  do<T>(work: () => T | Promise<T>): T | Promise<T> {
    const done = this.#last === undefined ? work() : this.#last.then(work, work)
    if (!(done instanceof Promise)) return done
    this.#last = done
    const forget = () => {
      if (this.#last === done) this.#last = undefined
    }
    done.then(forget, forget)
    return done
  }
}
