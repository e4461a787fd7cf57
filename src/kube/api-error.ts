// The API server's refusals.

/** The fields of a `Status` object that are read. */
export interface ApiStatus {
  readonly code: number
  /** `Expired`, `NotFound`, `TooManyRequests`... */
  readonly reason: string
  readonly message: string
  /** details.causes[].reason */
  readonly causes: readonly string[]
  readonly retryAfterSeconds: number
}

/** Messages are logged at each attempt. */
const LONGEST_MESSAGE = 1000

export class ApiError extends Error {
  override readonly name = 'ApiError'
  /** The HTTP status. */
  readonly status: number
  readonly reason: string
  readonly causes: readonly string[]
  /** How long the server asks us to wait. */
  readonly retryAfterMs: number | undefined

  constructor(action: string, status: ApiStatus) {
    const said = (status.message || status.reason || 'no reason given').slice(0, LONGEST_MESSAGE)
    super(`Cannot ${action}: ${said} (status ${status.code})`)
    this.status = status.code
    this.reason = status.reason
    this.causes = status.causes
    this.retryAfterMs = status.retryAfterSeconds > 0 ? status.retryAfterSeconds * 1000 : undefined
  }
}

/** The server no longer keeps the requested version: only a new list has the changes since. */
export function isExpired(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 410 || error.reason === 'Expired' || error.reason === 'Gone')
}

/** The server has not reached the requested version, as after a restore from a backup. */
export function isVersionTooLarge(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false
  // Servers before 1.17 gave no cause.
  return error.causes.includes('ResourceVersionTooLarge') || error.message.includes('Too large resource version')
}

/** The server does not understand the requested version. */
export function isVersionInvalid(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 400 || error.status === 422)
}

/** The server does not serve this resource. */
export function isNotServed(error: unknown): boolean {
  return error instanceof ApiError && error.status === 404
}
