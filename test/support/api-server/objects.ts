// The objects of the API as they are written down: loosely typed, because tests also store nonsense.

import {
  keyOf as keyOfChecked,
  type ApiObject as CheckedObject,
} from '../../../packages/sandbox/src/apiserver/objects/meta.ts'
import { apiVersionOf, type Resource } from '../../../packages/sandbox/src/apiserver/resources/resource.ts'
import {
  endpoints,
  endpointSlices,
  eventsV1,
  namespaces,
  nodes,
  serviceCidrs,
  services,
} from '../../../packages/sandbox/src/apiserver/resources/table.ts'

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

export type ServedResource = Resource

/** What a proxy follows, and what it writes. */
export const RESOURCES = [
  services,
  endpoints,
  nodes,
  namespaces,
  endpointSlices,
  serviceCidrs,
  eventsV1,
] as const satisfies readonly ServedResource[]

export function keyOf(object: ApiObject): string {
  return keyOfChecked(object as unknown as CheckedObject)
}

/** The resource of an object, by its kind (and apiVersion, if it says one). */
export function resourceOf(object: ApiObject): ServedResource {
  const found = (RESOURCES as readonly ServedResource[]).find(
    (resource) =>
      resource.kind === object.kind &&
      (object.apiVersion === undefined || object.apiVersion === apiVersionOf(resource)),
  )
  if (found === undefined) throw new Error(`Cannot store ${object.apiVersion} ${object.kind}: not served`)
  return found
}
