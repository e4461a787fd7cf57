// A request, as its path and method say it: which resource, which object, what to do.

import { badRequest, methodNotAllowed, noSuchResource } from '../api-error.ts'
import { resourceAt } from '../resources/table.ts'
import type { IncomingMessage } from 'node:http'
import type { Resource, Verb } from '../resources/resource.ts'

export interface ApiRequest {
  readonly verb: Verb
  readonly resource: Resource
  /** Empty for all namespaces, and for what lives in none. */
  readonly namespace: string
  readonly name: string
  readonly subresource: string
  readonly query: URLSearchParams
}

/** The request for an object of the API; a 404 or 405 when there is no such thing. */
export function parseApiRequest(method: string, url: URL): ApiRequest {
  const parts = decodePath(url.pathname)
  const isCore = parts[0] === 'api'
  const group = isCore ? '' : (parts[1] ?? '')
  const version = (isCore ? parts[1] : parts[2]) ?? ''
  const place = parsePlace(parts.slice(isCore ? 2 : 3))
  const resource = resourceAt(group, version, place.plural)
  if (resource === undefined || (resource.namespaced && place.namespace === '' && place.name !== '')) {
    throw noSuchResource()
  }
  if (!resource.namespaced && place.namespace !== '') throw noSuchResource()
  const verb = verbOf(method, place.name, url.searchParams)
  checkOffered(resource, verb, place)
  const { namespace, name, subresource } = place
  return { verb, resource, namespace, name, subresource, query: url.searchParams }
}

function decodePath(path: string): string[] {
  try {
    return path.split('/').slice(1).map(decodeURIComponent)
  } catch {
    throw badRequest(`the path ${path} is not encoded as a path must be`)
  }
}

interface PathPlace {
  readonly plural: string
  readonly namespace: string
  readonly name: string
  readonly subresource: string
}

/** `namespaces/NS/pods/NAME/status`, `nodes/NAME`; a namespace itself is `namespaces/NS`. */
function parsePlace(parts: readonly string[]): PathPlace {
  const inNamespace = parts[0] === 'namespaces' && parts.length > 2 && !namespaceParts.has(parts[2] ?? '')
  const [plural = '', name = '', ...rest] = inNamespace ? parts.slice(2) : parts
  return { plural, namespace: inNamespace ? (parts[1] ?? '') : '', name, subresource: rest.join('/') }
}

const namespaceParts: ReadonlySet<string> = new Set(['status', 'finalize'])

function verbOf(method: string, name: string, query: URLSearchParams): Verb {
  switch (method) {
    case 'GET':
    case 'HEAD':
      if (name !== '') return 'get'
      return ['true', '1'].includes(query.get('watch') ?? '') ? 'watch' : 'list'
    case 'POST':
      return 'create'
    case 'PUT':
      return 'update'
    case 'PATCH':
      return 'patch'
    case 'DELETE':
      return name === '' ? 'deletecollection' : 'delete'
    default:
      throw methodNotAllowed()
  }
}

function checkOffered(resource: Resource, verb: Verb, { namespace, name, subresource }: PathPlace): void {
  if (subresource !== '') {
    const offered = resource.subresources.find((one) => one.name === subresource)
    if (offered === undefined) throw noSuchResource()
    if (!offered.verbs.includes(verb)) throw methodNotAllowed()
    return
  }
  // A collection is created in, in one namespace; an object is replaced.
  const fits = verb === 'create' ? name === '' && (namespace !== '' || !resource.namespaced) : true
  const named = verb === 'update' || verb === 'patch' ? name !== '' : true
  if (!resource.verbs.includes(verb) || !fits || !named) throw methodNotAllowed()
}

export function urlOf({ url = '/' }: IncomingMessage): URL {
  try {
    return new URL(`http://localhost${url}`)
  } catch {
    throw badRequest(`the address ${url} cannot be read`)
  }
}
