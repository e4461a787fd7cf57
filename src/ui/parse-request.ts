// Validates the requests of a page, field by field.

import { BALANCES } from '../model/balance.ts'
import { plants, type Action, type DoctorRequest, type ExplainQuestion, type ServiceQuery } from './protocol.ts'
import { AskedWrongly } from './source.ts'

/** Returns what is allowed; undefined for a valid value. */
type Check = (value: unknown) => string | undefined
type Checks = Readonly<Record<string, Check>>

const LONGEST_TEXT = 300
const NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/

const text: Check = (value) =>
  typeof value === 'string' && value.length <= LONGEST_TEXT ? undefined : `a text of at most ${LONGEST_TEXT} characters`

/** Of an object of the API. */
const name: Check = (value) => (typeof value === 'string' && NAME.test(value) ? undefined : 'a name of an object')

function integer(min: number, max: number): Check {
  return (value) =>
    Number.isInteger(value) && (value as number) >= min && (value as number) <= max
      ? undefined
      : `a number from ${min} to ${max}`
}

function oneOf(...allowed: readonly unknown[]): Check {
  return (value) => (allowed.includes(value) ? undefined : `one of ${allowed.join(', ')}`)
}

function optional(check: Check): Check {
  return (value) => (value === undefined || value === null ? undefined : check(value))
}

const ofService = { namespace: name, service: name }
const policy = oneOf('Cluster', 'Local')

const actions: Readonly<Record<Action['action'], Checks>> = {
  scale: { namespace: name, deployment: name, replicas: integer(0, 300) },
  fail: { namespace: name, pod: name, how: oneOf('none', 'refuse', 'hang', 'die', 'slow') },
  'delete-pod': { namespace: name, pod: name },
  policy: { ...ofService, field: oneOf('internalTrafficPolicy', 'externalTrafficPolicy'), value: policy },
  affinity: { ...ofService, value: oneOf('None', 'ClientIP') },
  'connect-retry': { ...ofService, value: oneOf('on', 'off') },
  balance: { ...ofService, value: oneOf(...BALANCES) },
  'find-address': { address: text },
  flush: { node: name },
  'kill-proxy': { node: name },
  mode: { node: name, mode: name },
  'api-server-away': {},
  'api-server-back': {},
  load: { from: text, to: text, perSecond: integer(1, 50), via: optional(oneOf('clusterIP', 'loadBalancerIP')) },
  'load-end': {},
  plant: { failure: oneOf(...plants) },
}

const explainQuestion: Checks = {
  node: optional(text),
  from: text,
  to: text,
  via: optional(oneOf('clusterIP', 'externalIP', 'loadBalancerIP', 'nodePort')),
  family: optional(oneOf(4, 6)),
  send: optional(oneOf(true, false)),
}

export function parseServiceQuery(query: URLSearchParams): ServiceQuery {
  const given = { namespace: query.get('namespace'), name: query.get('name'), node: query.get('node') ?? '' }
  return parseFields(given, { namespace: name, name, node: text }) as unknown as ServiceQuery
}

export function parseExplainQuestion(body: unknown): ExplainQuestion {
  return parseFields(body, explainQuestion) as unknown as ExplainQuestion
}

export function parseDoctorRequest(body: unknown): DoctorRequest {
  return parseFields(body, { node: optional(text), service: optional(text), from: optional(text) })
}

export function parseAction(body: unknown): Action {
  const { action } = parseFields(body, { action: text }) as { action: string }
  const checks = Object.hasOwn(actions, action) ? actions[action as Action['action']] : undefined
  if (checks === undefined) throw new AskedWrongly(`Cannot do ${JSON.stringify(action)}: there is no such action`)
  return { action, ...parseFields(body, checks) } as Action
}

/** The fields that are checked, and no others. */
function parseFields(body: unknown, checks: Checks): Record<string, unknown> {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new AskedWrongly('Cannot read the request: it must be an object')
  }
  const fields = Object.entries(checks).map(([field, check]) => {
    const value = Object.hasOwn(body, field) ? (body as Record<string, unknown>)[field] : undefined
    const allowed = check(value)
    if (allowed === undefined) return [field, value ?? undefined]
    const shown = (JSON.stringify(value) ?? 'nothing').slice(0, 100)
    throw new AskedWrongly(`Cannot use ${field} ${shown}: must be ${allowed}`)
  })
  return Object.fromEntries(fields) as Record<string, unknown>
}
