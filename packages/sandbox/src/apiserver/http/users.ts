// The users, and what each may do.

import { ApiError, forbidden } from '../api-error.ts'
import { reviews } from '../resources/reviews.ts'
import { subjectOf } from '../registry/registry.ts'
import type { ApiRequest } from './api-request.ts'
import type { Verb } from '../resources/resource.ts'

export interface User {
  readonly name: string
  readonly token: string
  /** Undefined: everything. */
  readonly rules?: readonly Rule[]
}

export interface Rule {
  readonly verbs: readonly Verb[]
  /** `services`, `endpointslices.discovery.k8s.io`, `pods/status` */
  readonly resources: readonly string[]
}

export const anonymous: User = { name: 'system:anonymous', token: '', rules: [] }

/** What a proxy may do: read what it follows, and report Events. The same as system:node-proxier. */
export const proxyRules: readonly Rule[] = [
  {
    verbs: ['get', 'list', 'watch'],
    resources: ['nodes', 'services', 'endpoints', 'endpointslices.discovery.k8s.io', 'servicecidrs.networking.k8s.io'],
  },
  { verbs: ['create', 'patch', 'update'], resources: ['events', 'events.events.k8s.io'] },
]

/** The user of a token; the anonymous one without a token. An unknown token is a 401. */
export function authenticate(users: readonly User[], authorization: string | undefined): User {
  if (authorization === undefined) return anonymous
  const token = /^bearer (.+)$/i.exec(authorization)?.[1]?.trim()
  const user = users.find((one) => one.token === token)
  if (user === undefined) throw new ApiError(401, 'Unauthorized', 'Unauthorized')
  return user
}

export interface Permission {
  readonly verb: string
  readonly group: string
  readonly plural: string
  readonly subresource: string
}

export function isAllowed(user: User, { verb, group, plural, subresource }: Permission): boolean {
  if (user.rules === undefined) return true
  const full = group === '' ? plural : `${plural}.${group}`
  const requested = subresource === '' ? full : `${full}/${subresource}`
  return user.rules.some(({ verbs, resources }) => verbs.some((one) => one === verb) && resources.includes(requested))
}

/** Throws a 403 with the message of a real API server. */
export function authorize(user: User, request: ApiRequest): void {
  const { resource, verb, subresource, namespace, name } = request
  // Every user may ask about itself.
  if (user !== anonymous && reviews.some(({ message }) => message === resource.message)) return
  if (isAllowed(user, { verb, group: resource.group, plural: resource.plural, subresource })) return
  const what = subresource === '' ? resource.plural : `${resource.plural}/${subresource}`
  const where = namespace === '' ? 'at the cluster scope' : `in the namespace "${namespace}"`
  const reason = `User "${user.name}" cannot ${verb} resource "${what}" in API group "${resource.group}" ${where}`
  throw forbidden(subjectOf(resource, name), reason)
}

export function authorizePath(user: User, method: string, path: string): void {
  if (isAllowedPath(user, path)) return
  const verb = method.toLowerCase()
  const message = `forbidden: User "${user.name}" cannot ${verb} path "${path}"`
  throw new ApiError(403, 'Forbidden', message, {})
}

export function isAllowedPath(user: User, path: string): boolean {
  return user !== anonymous || publicPaths.has(path)
}

export const publicPaths: ReadonlySet<string> = new Set(['/healthz', '/livez', '/readyz', '/version', '/version/'])
