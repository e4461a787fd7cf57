// The options of lists and watches, from the query.

import { ApiError, badRequest, invalid } from '../api-error.ts'
import { compileFieldSelector, parseFieldSelector } from '../selectors/field-selector.ts'
import { forbiddenField, invalidValue } from '../fields/problem.ts'
import { matchesLabels, parseLabelSelector } from '../selectors/label-selector.ts'
import type { ApiObject } from '../objects/meta.ts'
import type { ApiRequest } from './api-request.ts'
import type { IncludeObject } from './table.ts'

const LIST_OPTIONS = { group: 'meta.k8s.io', resource: 'listoptions', kind: 'ListOptions', name: '' }

export type Predicate = (object: ApiObject) => boolean

/** Which objects a request is about; undefined when all of the collection are. */
export function parsePredicate({ resource, namespace, name, query }: ApiRequest): Predicate | undefined {
  const labels = parseLabelSelector(query.get('labelSelector') ?? '')
  const fields = parseFieldSelector(query.get('fieldSelector') ?? '')
  const tests: Predicate[] = []
  if (namespace !== '') tests.push((object) => object.metadata.namespace === namespace)
  if (name !== '') tests.push((object) => object.metadata.name === name)
  if (labels.length > 0) tests.push((object) => matchesLabels(labels, object.metadata.labels))
  if (fields.length > 0) {
    const readers = (resource.storedAs?.resource ?? resource).fields
    tests.push(compileFieldSelector(fields, { ...metaFields, ...readers }))
  }
  if (tests.length === 0) return undefined
  return (object) => tests.every((test) => test(object))
}

const metaFields = {
  'metadata.name': ({ metadata }: ApiObject) => metadata.name,
  'metadata.namespace': ({ metadata }: ApiObject) => metadata.namespace ?? '',
}

/**
 * A revision that the client has seen; undefined when it names none, or any. For one that is none the API has two answers:
 * that a watch is invalid, and for a list that something went wrong.
 */
export function parseRevision(query: URLSearchParams, verb: 'list' | 'watch'): number | undefined {
  const text = query.get('resourceVersion') ?? ''
  if (text === '' || text === '0') return undefined
  if (/^\d{1,15}$/.test(text)) return Number(text)
  const problem = invalidValue('resourceVersion', text, 'must be a number')
  if (verb === 'list') throw new ApiError(500, 'InternalError', `${problem.path}: ${problem.sentence}`)
  throw invalid(LIST_OPTIONS, [problem])
}

export interface Page {
  readonly revision: number
  /** The key after which the page starts. */
  readonly after: string
}

export function encodeContinue(page: Page): string {
  const token = { v: 'meta.k8s.io/v1', rv: page.revision, start: page.after }
  return Buffer.from(JSON.stringify(token)).toString('base64url')
}

export function parseContinue(text: string): Page {
  try {
    const { rv, start } = JSON.parse(Buffer.from(text, 'base64url').toString()) as { rv?: unknown; start?: unknown }
    if (typeof rv === 'number' && typeof start === 'string') return { revision: rv, after: start }
  } catch {
    // Said below.
  }
  throw badRequest('continue key is not valid: it must come from an earlier answer')
}

export function parseLimit(query: URLSearchParams): number | undefined {
  const text = query.get('limit') ?? ''
  if (text === '' || text === '0') return undefined
  const limit = Number(text)
  if (!Number.isInteger(limit) || limit < 0) throw badRequest(`invalid limit "${text}": must be a number`)
  return limit
}

const includes = ['Metadata', 'Object', 'None'] as const

export function parseInclude(query: URLSearchParams): IncludeObject {
  return includes.find((one) => one === query.get('includeObject')) ?? 'Metadata'
}

export type RevisionMatch = 'NotOlderThan' | 'Exact' | ''

/** Throws a 422 for combinations that mean nothing. */
export function parseRevisionMatch(query: URLSearchParams): RevisionMatch {
  const match = query.get('resourceVersionMatch') ?? ''
  if (match !== '' && match !== 'Exact' && match !== 'NotOlderThan') {
    throw invalidMatch(`Unsupported value: "${match}"`)
  }
  if (match !== '' && (query.get('resourceVersion') ?? '') === '' && query.get('sendInitialEvents') === null) {
    throw invalidMatch('is forbidden unless resourceVersion is provided')
  }
  if (match === 'Exact' && query.get('resourceVersion') === '0') {
    throw invalidMatch('resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
  }
  return match
}

function invalidMatch(detail: string): ApiError {
  return invalid(LIST_OPTIONS, [forbiddenField('resourceVersionMatch', detail)])
}

/** Whether a watch begins with everything there is. Throws a 422 when it is asked for in the wrong way. */
export function wantsInitialEvents(query: URLSearchParams): boolean {
  const asked = query.get('sendInitialEvents')
  if (asked === null || asked === 'false') return false
  if (query.get('resourceVersionMatch') !== 'NotOlderThan') {
    const detail = 'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan'
    throw invalidMatch(detail)
  }
  return true
}

/** A number of seconds in a query; undefined when it is not there. Throws a 422 when it is no number. */
export function parseSeconds(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name) ?? ''
  if (text === '') return undefined
  const seconds = Number(text)
  if (Number.isInteger(seconds) && seconds >= 0) return seconds
  throw invalid(LIST_OPTIONS, [invalidValue(name, text, 'must be a number of seconds')])
}
