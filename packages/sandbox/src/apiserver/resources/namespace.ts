import { nameRules } from '../fields/object-meta.ts'
import { ageColumn, nameColumn } from './columns.ts'
import { allVerbs, defineResource, statusSubresource } from './resource.ts'
import type { Namespace } from '../objects/node.ts'

export const namespaces = defineResource<Namespace>({
  kind: 'Namespace',
  shortNames: ['ns'],
  namespaced: false,
  verbs: allVerbs.filter((verb) => verb !== 'deletecollection'),
  subresources: [{ name: 'finalize', verbs: ['update'] }, statusSubresource],
  nameRule: nameRules.label,
  columns: [nameColumn, { name: 'Status', cell: ({ status }) => status.phase ?? '' }, ageColumn],
  fields: { 'status.phase': ({ status }) => status.phase ?? '' },
  setDefaults({ metadata }) {
    if (metadata.name !== undefined) (metadata.labels ??= {})['kubernetes.io/metadata.name'] = metadata.name
  },
  prepareCreate(namespace) {
    namespace.status = { phase: 'Active' }
    const finalizers = (namespace.spec.finalizers ??= [])
    if (!finalizers.includes('kubernetes')) finalizers.push('kubernetes')
  },
  prepareUpdate(next, current) {
    next.spec = current.spec
  },
})
