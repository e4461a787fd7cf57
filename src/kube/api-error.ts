// What the API server says when it does not do what it was asked.

/** The fields of a `Status` object that matter. */
export interface ApiStatus {
  readonly code: number
  /** `Expired`, `NotFound`, `TooManyRequests`... */
  readonly reason: string
  readonly message: string
  /** details.causes[].reason */
  readonly causes: readonly string[]
  readonly retryAfterSeconds: number
}

/** What is worth showing of what a server says; it is logged at each attempt. */
const LONGEST_MESSAGE = 1000

export class ApiError extends Error {
  override readonly name = 'ApiError'
  /** The HTTP status. */
  readonly status: number
  readonly reason: string
  readonly causes: readonly string[]
  /** How long the server asks us to stay away; undefined when it does not say. */
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

/** The version that was asked for is no longer kept: what came after it can only be learned by listing again. */
export function isExpired(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 410 || error.reason === 'Expired' || error.reason === 'Gone')
}

/** The version that was asked for is one that the server has not reached, as after a restore from a backup. */
export function isVersionTooLarge(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false
  // Servers before 1.17 gave no cause.
  return error.causes.includes('ResourceVersionTooLarge') || error.message.includes('Too large resource version')
}

/** The server does not understand the version that was asked for, as when it did not give it, or should not have. */
export function isVersionInvalid(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 400 || error.status === 422)
}

/** The server has no such resource: an older one, or one that does not serve it. */
export function isNotServed(error: unknown): boolean {
  return error instanceof ApiError && error.status === 404
}
