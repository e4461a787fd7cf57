// Answers to reviews: what is asked for comes back with a status.

import { isAllowed, isAllowedPath, publicPaths, type User } from './users.ts'
import { readObject } from './incoming-object.ts'
import { accessReviews, reviews, rulesReviews } from '../resources/reviews.ts'
import { sendKind } from './exchange.ts'
import type { AccessReview, RulesReview, SubjectReview } from '../objects/reviews.ts'
import type { Exchange } from './exchange.ts'
import type { JsonObject } from '../json.ts'
import type { Resource } from '../resources/resource.ts'

export function isReview(resource: Resource): boolean {
  return reviews.some(({ message }) => message === resource.message)
}

export async function serveReview(exchange: Exchange): Promise<void> {
  const { request, user } = exchange
  const object = await readObject(exchange)
  const status = answer(request.resource, object as AccessReview, user)
  sendKind(exchange, 201, { ...(object as unknown as JsonObject), status }, request.resource.message)
}

function answer({ message }: Resource, { spec }: Pick<AccessReview, 'spec'>, user: User): JsonObject {
  const status =
    message === accessReviews.message ? access(spec, user) : message === rulesReviews.message ? rules(user) : self(user)
  return status as unknown as JsonObject
}

function access(spec: AccessReview['spec'], user: User): AccessReview['status'] {
  const { resourceAttributes: requested, nonResourceAttributes: path } = spec
  const allowed =
    requested === undefined
      ? isAllowedPath(user, path?.path ?? '')
      : isAllowed(user, {
          verb: requested.verb ?? '',
          group: requested.group ?? '',
          plural: requested.resource ?? '',
          subresource: requested.subresource ?? '',
        })
  return { allowed }
}

function rules({ rules: given }: User): RulesReview['status'] {
  const all = ['*']
  if (given === undefined) {
    return {
      resourceRules: [{ verbs: all, apiGroups: all, resources: all }],
      nonResourceRules: [{ verbs: all, nonResourceURLs: all }],
      incomplete: false,
    }
  }
  const resourceRules = given.flatMap(({ verbs, resources }) =>
    resources.map((resource) => {
      const [, plural = '', group = '', subresource = ''] = /^([^./]+)(?:\.([^/]+))?(\/.*)?$/.exec(resource) ?? []
      return { verbs, apiGroups: [group], resources: [plural + subresource] }
    }),
  )
  const nonResourceRules = [{ verbs: ['get'], nonResourceURLs: [...publicPaths] }]
  return { resourceRules, nonResourceRules, incomplete: false }
}

function self({ name, rules: given }: User): SubjectReview['status'] {
  const groups = [...(given === undefined ? ['system:masters'] : []), 'system:authenticated']
  return { userInfo: { username: name, groups } }
}
