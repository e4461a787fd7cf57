/** The watch began well and cannot go on. */
export class WatchLostError extends Error {
  override readonly cause: Error
  /** Usually only a list can tell what is true now. */
  readonly remedy: 'list again' | 'watch again'

  constructor(cause: Error, remedy: 'list again' | 'watch again' = 'list again') {
    super(cause.message)
    this.cause = cause
    this.remedy = remedy
  }
}
