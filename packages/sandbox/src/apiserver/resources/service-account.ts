import { nameRules } from '../fields/object-meta.ts'
import { ageColumn, nameColumn } from './columns.ts'
import { defineResource } from './resource.ts'
import type { ServiceAccount } from '../objects/small.ts'

export const serviceAccounts = defineResource<ServiceAccount>({
  group: '',
  version: 'v1',
  kind: 'ServiceAccount',
  plural: 'serviceaccounts',
  singular: 'serviceaccount',
  shortNames: ['sa'],
  namespaced: true,
  message: 'core.ServiceAccount',
  nameRule: nameRules.subdomain,
  columns: [nameColumn, ageColumn],
})
