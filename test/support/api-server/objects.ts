// The objects of the API as they are written down: loosely typed, because tests also store nonsense.

export interface ApiObject {
  apiVersion?: string
  kind?: string
  metadata: ObjectMetadata
  [field: string]: unknown
}

export interface ObjectMetadata {
  name: string
  namespace?: string
  uid?: string
  resourceVersion?: string
  creationTimestamp?: string
  deletionTimestamp?: string
  labels?: Record<string, string>
  annotations?: Record<string, string>
  [field: string]: unknown
}

export interface ServedResource {
  readonly plural: string
  readonly kind: string
  /** `v1` or `discovery.k8s.io/v1`. */
  readonly apiVersion: string
  readonly namespaced: boolean
}

export const RESOURCES = [
  { plural: 'services', kind: 'Service', apiVersion: 'v1', namespaced: true },
  { plural: 'endpoints', kind: 'Endpoints', apiVersion: 'v1', namespaced: true },
  { plural: 'nodes', kind: 'Node', apiVersion: 'v1', namespaced: false },
  { plural: 'namespaces', kind: 'Namespace', apiVersion: 'v1', namespaced: false },
  { plural: 'endpointslices', kind: 'EndpointSlice', apiVersion: 'discovery.k8s.io/v1', namespaced: true },
  { plural: 'servicecidrs', kind: 'ServiceCIDR', apiVersion: 'networking.k8s.io/v1', namespaced: false },
  { plural: 'events', kind: 'Event', apiVersion: 'events.k8s.io/v1', namespaced: true },
  { plural: 'events', kind: 'Event', apiVersion: 'v1', namespaced: true },
] as const satisfies readonly ServedResource[]

/** `/api/v1/services`, `/apis/discovery.k8s.io/v1/endpointslices`. */
export function pathOf(resource: ServedResource): string {
  const root = resource.apiVersion.includes('/') ? '/apis' : '/api'
  return `${root}/${resource.apiVersion}/${resource.plural}`
}

export function keyOf(object: ApiObject): string {
  const { namespace, name } = object.metadata
  return namespace === undefined || namespace === '' ? name : `${namespace}/${name}`
}

/** The resource of an object, by its kind (and apiVersion, if it says one). */
export function resourceOf(object: ApiObject): ServedResource {
  const found = RESOURCES.find(
    ({ kind, apiVersion }) =>
      kind === object.kind && (object.apiVersion === undefined || object.apiVersion === apiVersion),
  )
  if (found === undefined) throw new Error(`Cannot store ${object.apiVersion} ${object.kind}: not served`)
  return found
}
