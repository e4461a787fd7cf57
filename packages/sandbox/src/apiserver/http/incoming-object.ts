// The object in a request: the right kind, in the right place, with no unknown fields (if the client asks for that).

import { addWarnings } from './exchange.ts'
import { apiVersionOf } from '../resources/resource.ts'
import { badRequest } from '../api-error.ts'
import { decodeObject, TypeMismatchError } from '../schema/decode.ts'
import { messageNamed } from '../schema/schema.ts'
import { mediaType, parseObject, readBody } from './body.ts'
import type { ApiObject } from '../objects/meta.ts'
import type { Exchange } from './exchange.ts'
import type { JsonObject } from '../json.ts'

/** What a subresource takes instead of the resource's own kind. */
export interface IncomingKind {
  readonly kind: string
  readonly apiVersion: string
  readonly message: string
}

export function ownKind({ request: { resource } }: Exchange): IncomingKind {
  return { kind: resource.kind, apiVersion: apiVersionOf(resource), message: resource.message }
}

export async function readObject(exchange: Exchange, kind: IncomingKind = ownKind(exchange)): Promise<ApiObject> {
  const bytes = await readBody(exchange.incoming)
  return acceptObject(exchange, parseObject(bytes, mediaType(exchange.incoming), kind), kind)
}

/** Checks an object from a client or from a patch, and puts it where the path says. */
export function acceptObject(
  exchange: Exchange,
  source: JsonObject,
  kind: IncomingKind = ownKind(exchange),
): ApiObject {
  checkKind(source, kind)
  const object = decodeStrictly(exchange, { ...source, kind: kind.kind, apiVersion: kind.apiVersion }, kind)
  const { namespace, name, resource } = exchange.request
  const meta = object.metadata
  if (resource.namespaced) {
    if ((meta.namespace ?? '') !== '' && meta.namespace !== namespace) {
      throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
    }
    meta.namespace = namespace
  }
  if (kind.kind === resource.kind) addWarnings(exchange.response, resource.warnings(object))
  if (name !== '') {
    if ((meta.name ?? '') === '') meta.name = name
    if (meta.name !== name) {
      throw badRequest(`the name of the object (${meta.name}) does not match the name on the URL (${name})`)
    }
  }
  return object
}

function checkKind(source: JsonObject, { kind, apiVersion }: IncomingKind): void {
  const given = (name: string): string => (typeof source[name] === 'string' ? source[name] : '')
  const [givenKind, version] = [given('kind'), given('apiVersion')]
  const agrees = (one: string, expected: string): boolean => one === '' || one === expected
  if (agrees(givenKind, kind) && agrees(version, apiVersion)) return
  const what = `${givenKind} in version "${version}" cannot be handled as a ${kind}`
  throw badRequest(givenKind === kind ? `${what}: no kind "${kind}" is registered for version "${version}"` : what)
}

/** fieldValidation says what becomes of unknown fields: Strict refuses them, Warn names them, Ignore drops them. */
function decodeStrictly(exchange: Exchange, source: JsonObject, kind: IncomingKind): ApiObject {
  const mode = exchange.request.query.get('fieldValidation') ?? 'Warn'
  try {
    const { value, unknown } = decodeObject(messageNamed(kind.message), source)
    const complaints = unknown.map((path) => `unknown field "${path}"`)
    if (complaints.length > 0 && mode === 'Strict') {
      throw badRequest(`${cannotHandle(kind)}: strict decoding error: ${complaints.join(', ')}`)
    }
    if (mode === 'Warn') addWarnings(exchange.response, complaints)
    return value as unknown as ApiObject
  } catch (error) {
    if (error instanceof TypeMismatchError) throw badRequest(`${cannotHandle(kind)}: ${error.message}`)
    throw error
  }
}

function cannotHandle({ kind, apiVersion }: IncomingKind): string {
  return `${kind} in version "${apiVersion.split('/').at(-1)}" cannot be handled as a ${kind}`
}
