// Questions in the form of objects: they are created, answered and forgotten. `kubectl auth` asks them.

import { nameRules } from '../fields/object-meta.ts'
import { nameColumn } from './columns.ts'
import { defineResource } from './resource.ts'
import type { AccessReview, RulesReview, SubjectReview } from '../objects/reviews.ts'

const question = {
  version: 'v1',
  namespaced: false,
  verbs: ['create'],
  nameRule: nameRules.subdomain,
  columns: [nameColumn],
} as const

export const accessReviews = defineResource<AccessReview>({
  ...question,
  group: 'authorization.k8s.io',
  kind: 'SelfSubjectAccessReview',
})

export const rulesReviews = defineResource<RulesReview>({
  ...question,
  group: 'authorization.k8s.io',
  kind: 'SelfSubjectRulesReview',
})

export const subjectReviews = defineResource<SubjectReview>({
  ...question,
  group: 'authentication.k8s.io',
  kind: 'SelfSubjectReview',
})

/** For all who are known. */
export const reviews = [accessReviews, rulesReviews, subjectReviews] as const
