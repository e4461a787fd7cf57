// What a page sends, looked at field by field before anything is done with it.

import type { Action, ExplainQuestion, ServiceQuery } from './protocol.ts'
import { AskedWrongly } from './source.ts'

const LONGEST_TEXT = 300
const NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/

export function parseServiceQuery(query: URLSearchParams): ServiceQuery {
  const fields = new Fields({
    namespace: query.get('namespace'),
    name: query.get('name'),
    node: query.get('node') ?? '',
  })
  return { namespace: fields.name('namespace'), name: fields.name('name'), node: fields.text('node') }
}

export function parseExplainQuestion(body: unknown): ExplainQuestion {
  const fields = new Fields(body)
  return {
    node: fields.has('node') ? fields.text('node') : undefined,
    from: fields.text('from'),
    to: fields.text('to'),
    via: fields.has('via') ? fields.oneOf('via', ['clusterIP', 'externalIP', 'loadBalancerIP', 'nodePort']) : undefined,
    family: fields.has('family') ? fields.oneOf('family', [4, 6]) : undefined,
    send: fields.has('send') ? fields.oneOf('send', [true, false]) : undefined,
  }
}

export function parseAction(body: unknown): Action {
  const fields = new Fields(body)
  const action = fields.text('action') as Action['action']
  const namespace = () => fields.name('namespace')
  switch (action) {
    case 'scale':
      return {
        action,
        namespace: namespace(),
        deployment: fields.name('deployment'),
        replicas: fields.number('replicas', 0, 200),
      }
    case 'fail':
      return {
        action,
        namespace: namespace(),
        pod: fields.name('pod'),
        how: fields.oneOf('how', ['none', 'refuse', 'hang', 'die']),
      }
    case 'delete-pod':
      return { action, namespace: namespace(), pod: fields.name('pod') }
    case 'policy': {
      const field = fields.oneOf('field', ['internalTrafficPolicy', 'externalTrafficPolicy'])
      const value = fields.oneOf('value', ['Cluster', 'Local'])
      return { action, namespace: namespace(), service: fields.name('service'), field, value }
    }
    case 'affinity':
      return {
        action,
        namespace: namespace(),
        service: fields.name('service'),
        value: fields.oneOf('value', ['None', 'ClientIP']),
      }
    case 'connect-retry':
      return {
        action,
        namespace: namespace(),
        service: fields.name('service'),
        value: fields.oneOf('value', ['on', 'off']),
      }
    case 'find-address':
      return { action, address: fields.text('address') }
    case 'flush':
    case 'kill-proxy':
      return { action, node: fields.name('node') }
    case 'mode':
      return { action, node: fields.name('node'), mode: fields.name('mode') }
    case 'api-server-away':
    case 'api-server-back':
    case 'load-end':
      return { action }
    case 'load':
      return { action, from: fields.text('from'), to: fields.text('to'), perSecond: fields.number('perSecond', 1, 50) }
    default:
      throw new AskedWrongly(`Cannot do ${JSON.stringify(action)}: there is no such action`)
  }
}

class Fields {
  readonly #fields: Readonly<Record<string, unknown>>

  constructor(body: unknown) {
    if (typeof body !== 'object' || body === null || Array.isArray(body)) {
      throw new AskedWrongly('Cannot read the question: it must be an object')
    }
    this.#fields = body as Readonly<Record<string, unknown>>
  }

  has(name: string): boolean {
    return this.#value(name) !== undefined && this.#value(name) !== null
  }

  text(name: string): string {
    const value = this.#value(name)
    if (typeof value === 'string' && value.length <= LONGEST_TEXT) return value
    throw this.#mistake(name, `a text of at most ${LONGEST_TEXT} characters`)
  }

  /** Of an object of the API. */
  name(name: string): string {
    const value = this.#value(name)
    if (typeof value === 'string' && NAME.test(value)) return value
    throw this.#mistake(name, 'a name of an object')
  }

  number(name: string, min: number, max: number): number {
    const value = this.#value(name)
    if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value
    throw this.#mistake(name, `a number from ${min} to ${max}`)
  }

  oneOf<const T>(name: string, allowed: readonly T[]): T {
    const found = allowed.find((each) => each === this.#value(name))
    if (found === undefined) throw this.#mistake(name, `one of ${allowed.join(', ')}`)
    return found
  }

  #value(name: string): unknown {
    return Object.hasOwn(this.#fields, name) ? this.#fields[name] : undefined
  }

  #mistake(name: string, allowed: string): AskedWrongly {
    const value = JSON.stringify(this.#value(name)) ?? 'nothing'
    return new AskedWrongly(`Cannot use ${name} ${value.slice(0, 100)}: must be ${allowed}`)
  }
}
