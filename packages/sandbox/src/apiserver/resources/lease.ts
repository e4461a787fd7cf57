import { ageColumn, nameColumn } from './columns.ts'
import { defineResource } from './resource.ts'
import type { Lease } from '../objects/small.ts'

/** Signs of life. `kubectl describe node` looks for the node's. */
export const leases = defineResource<Lease>({
  group: 'coordination.k8s.io',
  kind: 'Lease',
  createOnUpdate: true,
  columns: [nameColumn, { name: 'Holder', cell: ({ spec }) => spec.holderIdentity ?? '' }, ageColumn],
})
