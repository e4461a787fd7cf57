import type { ApiObject } from './meta.ts'

export interface ResourceAttributes {
  readonly namespace?: string
  readonly verb?: string
  readonly group?: string
  readonly resource?: string
  readonly subresource?: string
}

export interface AccessReview extends ApiObject {
  spec: { resourceAttributes?: ResourceAttributes; nonResourceAttributes?: { path?: string; verb?: string } }
  status: { allowed: boolean; reason?: string }
}

export interface RulesReview extends ApiObject {
  spec: { namespace?: string }
  status: {
    resourceRules: { verbs: readonly string[]; apiGroups: readonly string[]; resources: readonly string[] }[]
    nonResourceRules: { verbs: readonly string[]; nonResourceURLs: readonly string[] }[]
    incomplete: boolean
  }
}

export interface SubjectReview extends ApiObject {
  status: { userInfo: { username: string; groups: readonly string[] } }
}
