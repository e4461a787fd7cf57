// The API's way to say no: a Status object, with a code that programs branch on and a sentence that people read.

import type { FieldProblem } from './fields/problem.ts'

export interface StatusCause {
  readonly reason: string
  readonly message: string
  readonly field: string
}

export interface StatusDetails {
  readonly name?: string
  readonly group?: string
  readonly kind?: string
  readonly uid?: string
  readonly causes?: readonly StatusCause[]
  readonly retryAfterSeconds?: number
}

/** An answer of 400 or more. Branch on `reason`. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly code: number
  readonly reason: string
  readonly details: StatusDetails | undefined

  constructor(code: number, reason: string, message: string, details?: StatusDetails) {
    super(message)
    this.code = code
    this.reason = reason
    this.details = details
  }
}

/** What an error is about. */
export interface Subject {
  readonly group: string
  /** The plural resource in most errors, the kind in complaints about fields. */
  readonly resource: string
  readonly kind: string
  readonly name: string
}

export function badRequest(message: string): ApiError {
  return new ApiError(400, 'BadRequest', message)
}

export function notFound(subject: Subject): ApiError {
  return new ApiError(404, 'NotFound', `${qualified(subject)} "${subject.name}" not found`, detailsOf(subject))
}

export function alreadyExists(subject: Subject): ApiError {
  return new ApiError(
    409,
    'AlreadyExists',
    `${qualified(subject)} "${subject.name}" already exists`,
    detailsOf(subject),
  )
}

export function conflict(subject: Subject, reason: string): ApiError {
  const message = `Operation cannot be fulfilled on ${qualified(subject)} "${subject.name}": ${reason}`
  return new ApiError(409, 'Conflict', message, detailsOf(subject))
}

export const staleVersion =
  'the object has been modified; please apply your changes to the latest version and try again'

export function forbidden(subject: Subject, reason: string): ApiError {
  const name = subject.name === '' ? '' : ` "${subject.name}"`
  return new ApiError(403, 'Forbidden', `${qualified(subject)}${name} is forbidden: ${reason}`, detailsOf(subject))
}

/** Fields that cannot be accepted. kubectl prints one problem on the line and several as a list. */
export function invalid(subject: Subject, problems: readonly FieldProblem[]): ApiError {
  const sentences = problems.map((problem) => `${problem.path}: ${problem.sentence}`)
  const all = sentences.length === 1 ? sentences[0] : `[${sentences.join(', ')}]`
  const kind = subject.group === '' ? subject.kind : `${subject.kind}.${subject.group}`
  return new ApiError(422, 'Invalid', `${kind} "${subject.name}" is invalid: ${all}`, {
    ...(subject.name === '' ? {} : { name: subject.name }),
    ...(subject.group === '' ? {} : { group: subject.group }),
    kind: subject.kind,
    causes: problems.map((problem) => ({
      reason: problem.reason,
      message: problem.sentence,
      field: problem.path,
    })),
  })
}

export function methodNotAllowed(): ApiError {
  return new ApiError(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource', {})
}

export function noSuchResource(): ApiError {
  return new ApiError(404, 'NotFound', 'the server could not find the requested resource', {})
}

/** History that is no longer kept. Clients answer it by starting over. */
export function expired(message: string): ApiError {
  return new ApiError(410, 'Expired', message)
}

function qualified(subject: Subject): string {
  return subject.group === '' ? subject.resource : `${subject.resource}.${subject.group}`
}

function detailsOf(subject: Subject): StatusDetails {
  return {
    ...(subject.name === '' ? {} : { name: subject.name }),
    ...(subject.group === '' ? {} : { group: subject.group }),
    kind: subject.resource,
  }
}

/** The Status object of an error. */
export function statusOf(error: ApiError): Record<string, unknown> {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: error.message,
    reason: error.reason,
    ...(error.details === undefined ? {} : { details: error.details }),
    code: error.code,
  }
}
