import { nameRules } from '../fields/object-meta.ts'
import { ageColumn, nameColumn } from './columns.ts'
import { defineResource } from './resource.ts'
import type { Lease } from '../objects/small.ts'

/** Signs of life. `kubectl describe node` looks for the node's. */
export const leases = defineResource<Lease>({
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  plural: 'leases',
  singular: 'lease',
  namespaced: true,
  message: 'coordination.Lease',
  nameRule: nameRules.subdomain,
  createOnUpdate: true,
  columns: [
    nameColumn,
    { name: 'Holder', description: 'Who holds it.', cell: ({ spec }) => spec.holderIdentity ?? '' },
    ageColumn,
  ],
})
