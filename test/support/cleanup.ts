// What has to be undone, in the opposite order. (AsyncDisposableStack, which Node 20 lacks.)

export class Cleanup implements AsyncDisposable {
  readonly #undo: (() => void | Promise<void>)[] = []

  /** Remembers to dispose of the value, and gives it back. */
  use<T extends Disposable | AsyncDisposable>(value: T): T {
    this.defer(async () => {
      if (Symbol.asyncDispose in value) await value[Symbol.asyncDispose]()
      else value[Symbol.dispose]()
    })
    return value
  }

  defer(undo: () => void | Promise<void>): void {
    this.#undo.push(undo)
  }

  /** Undoes everything, also when something of it fails; the first failure is thrown at the end. */
  async [Symbol.asyncDispose](): Promise<void> {
    const failures: unknown[] = []
    for (const undo of this.#undo.splice(0).toReversed()) {
      try {
        await undo()
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
  }
}
