import { defineResource } from './resource.ts'
import type { ServiceAccount } from '../objects/small.ts'

export const serviceAccounts = defineResource<ServiceAccount>({
  kind: 'ServiceAccount',
  shortNames: ['sa'],
})
