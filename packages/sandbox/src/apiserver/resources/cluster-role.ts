// Roles and their bindings, so that manifests can be tried. Rights in the sandbox depend on the token alone.

import { pathSegmentProblem } from '../fields/object-meta.ts'
import { immutable, oneOf } from '../fields/check.ts'
import { invalidValue, requiredValue } from '../fields/problem.ts'
import { ageColumn, nameColumn } from './columns.ts'
import { defineResource } from './resource.ts'
import type { FieldProblem } from '../fields/problem.ts'
import type { ClusterRole, ClusterRoleBinding, PolicyRule, RoleSubject } from '../objects/roles.ts'

const group = 'rbac.authorization.k8s.io'
const keptOnly = 'the sandbox keeps roles and their bindings, and gives no rights by them'

export const clusterRoles = defineResource<ClusterRole>({
  group,
  kind: 'ClusterRole',
  namespaced: false,
  nameRule: pathSegmentProblem,
  columns: [nameColumn, { name: 'Created At', cell: ({ metadata }) => metadata.creationTimestamp ?? '' }],
  validate: ({ rules }) => (rules ?? []).flatMap((rule, i) => validateRule(rule, `rules[${i}]`)),
  warnings: () => [keptOnly],
})

export const clusterRoleBindings = defineResource<ClusterRoleBinding>({
  group,
  kind: 'ClusterRoleBinding',
  namespaced: false,
  nameRule: pathSegmentProblem,
  columns: [nameColumn, { name: 'Role', cell: ({ roleRef }) => `${roleRef.kind}/${roleRef.name}` }, ageColumn],
  setDefaults({ roleRef, subjects }) {
    if (roleRef.apiGroup === '' || roleRef.apiGroup === undefined) roleRef.apiGroup = group
    for (const subject of subjects ?? []) {
      if (subject.kind !== 'ServiceAccount') subject.apiGroup ??= group
    }
  },
  validate: validateBinding,
  validateUpdate: (next, current) => [
    ...immutable('roleRef', next.roleRef, current.roleRef, 'cannot change roleRef'),
    ...validateBinding(next),
  ],
  warnings: () => [keptOnly],
})

function validateRule({ verbs = [], apiGroups = [], resources = [], nonResourceURLs = [] }: PolicyRule, path: string) {
  const needs = (field: string, isMissing: boolean): FieldProblem[] =>
    isMissing ? [requiredValue(`${path}.${field}`)] : []
  const isOfUrls = nonResourceURLs.length > 0
  return [
    ...needs('verbs', verbs.length === 0),
    ...(isOfUrls && apiGroups.length + resources.length > 0
      ? [
          invalidValue(
            `${path}.nonResourceURLs`,
            nonResourceURLs,
            'rules cannot apply to both regular resources and non-resource URLs',
          ),
        ]
      : []),
    ...needs('apiGroups', !isOfUrls && apiGroups.length === 0),
    ...needs('resources', !isOfUrls && resources.length === 0),
  ]
}

function validateBinding({ roleRef, subjects = [] }: ClusterRoleBinding): FieldProblem[] {
  return [
    ...oneOf('roleRef.apiGroup', roleRef.apiGroup ?? '', [group]),
    ...oneOf('roleRef.kind', roleRef.kind, ['ClusterRole']),
    ...(roleRef.name === '' ? [requiredValue('roleRef.name')] : []),
    ...subjects.flatMap((subject, i) => validateSubject(subject, `subjects[${i}]`)),
  ]
}

const subjectKinds = ['ServiceAccount', 'User', 'Group'] as const

function validateSubject({ kind, name, namespace = '' }: RoleSubject, path: string): FieldProblem[] {
  return [
    ...(name === '' ? [requiredValue(`${path}.name`)] : []),
    ...oneOf(`${path}.kind`, kind, subjectKinds),
    ...(kind === 'ServiceAccount' && namespace === '' ? [requiredValue(`${path}.namespace`)] : []),
  ]
}
