// Failures on demand.

import type { ApiRequest } from '../../../packages/sandbox/src/apiserver/http/api-request.ts'
import type { StatusBody } from './encodings.ts'

/** What goes wrong with a request. */
export type Misbehaviour =
  /** Answers with an error. */
  | { readonly type: 'status'; readonly status: StatusBody; readonly retryAfterSeconds?: number }
  /** Closes the connection without an answer. */
  | { readonly type: 'drop' }
  /** Accepts the request and never answers. */
  | { readonly type: 'hang' }
  /** Answers after a while. */
  | { readonly type: 'delay'; readonly ms: number }
  /** Breaks the connection in the middle of the answer, after so many bytes. */
  | { readonly type: 'cut'; readonly afterBytes: number }
  /** Sends the answer in small pieces with pauses between them. */
  | { readonly type: 'slow'; readonly pieceBytes: number; readonly pauseMs: number }
  /** Begins a watch and sends an ERROR frame. */
  | { readonly type: 'errorFrame'; readonly status: StatusBody }
  /** Begins an answer properly, and continues with these bytes. */
  | { readonly type: 'garbage'; readonly bytes: Buffer }
  /** Ends a watch properly as soon as it began. */
  | { readonly type: 'end' }
  /** Lists nothing, as if there were nothing. */
  | { readonly type: 'empty' }
  /** Gives a list another version than it has. */
  | { readonly type: 'version'; readonly version: string }
  /** Answers as JSON, whatever was asked for. */
  | { readonly type: 'json' }

export interface Fault {
  readonly on: 'list' | 'watch' | 'any'
  /** The plural; every resource when absent. */
  readonly resource?: string
  /** How many requests are hit; 1 when absent, Infinity for all. */
  readonly times?: number
  readonly what: Misbehaviour
}

/** The faults that wait for their requests. */
export class FaultPlan {
  readonly #waiting: { fault: Fault; left: number }[] = []

  add(fault: Fault): void {
    this.#waiting.push({ fault, left: fault.times ?? 1 })
  }

  clear(): void {
    this.#waiting.length = 0
  }

  /** The first fault that fits, used up by one. */
  take({ verb, resource: { plural } }: ApiRequest): Misbehaviour | undefined {
    const index = this.#waiting.findIndex(
      ({ fault: { on, resource } }) => (on === 'any' || on === verb) && (resource === undefined || resource === plural),
    )
    const found = this.#waiting[index]
    if (found === undefined) return undefined
    if (--found.left <= 0) this.#waiting.splice(index, 1)
    return found.fault.what
  }
}

export const STATUS = {
  expired: { code: 410, reason: 'Expired', message: 'too old resource version' },
  tooManyRequests: { code: 429, reason: 'TooManyRequests', message: 'the server has received too many requests' },
  internal: { code: 500, reason: 'InternalError', message: 'an error on the server has prevented the request' },
  unavailable: { code: 503, reason: 'ServiceUnavailable', message: 'the server is currently unable to handle it' },
  forbidden: { code: 403, reason: 'Forbidden', message: 'access denied' },
  badRequest: { code: 400, reason: 'BadRequest', message: 'the request cannot be understood' },
  notFound: { code: 404, reason: 'NotFound', message: 'the server could not find the requested resource' },
  unauthorized: { code: 401, reason: 'Unauthorized', message: 'Unauthorized' },
} as const satisfies Record<string, StatusBody>
