import type { ApiObject } from './meta.ts'

export interface PolicyRule {
  verbs?: string[]
  apiGroups?: string[]
  resources?: string[]
  nonResourceURLs?: string[]
}

export interface ClusterRole extends ApiObject {
  rules?: PolicyRule[] | null
}

export interface RoleSubject {
  kind: string
  apiGroup?: string
  name: string
  namespace?: string
}

export interface ClusterRoleBinding extends ApiObject {
  subjects?: RoleSubject[]
  roleRef: { apiGroup?: string; kind: string; name: string }
}
