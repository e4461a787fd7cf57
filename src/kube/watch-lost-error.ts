/** A watch that began well cannot go on. */
export class WatchLostError extends Error {
  override readonly cause: Error
  /** Mostly, only a list has the current state. */
  readonly remedy: 'list again' | 'watch again'

  constructor(cause: Error, remedy: 'list again' | 'watch again' = 'list again') {
    super(cause.message)
    this.cause = cause
    this.remedy = remedy
  }
}
