// What every object has. The objects are the API's JSON, decoded by the schema: the types here name the fields that this
// program reads or writes, and the rest travels with them.

export interface OwnerReference {
  apiVersion: string
  kind: string
  name: string
  uid: string
  controller?: boolean
  blockOwnerDeletion?: boolean
}

export type Labels = Record<string, string>

export interface ObjectMeta {
  name: string
  generateName?: string
  namespace?: string
  uid?: string
  resourceVersion?: string
  generation?: number
  creationTimestamp?: string
  deletionTimestamp?: string
  deletionGracePeriodSeconds?: number
  labels?: Labels
  annotations?: Labels
  ownerReferences?: OwnerReference[]
  finalizers?: string[]
  managedFields?: unknown[]
}

export interface ApiObject {
  kind: string
  apiVersion: string
  metadata: ObjectMeta
}

export interface LabelSelector {
  matchLabels?: Labels
  matchExpressions?: LabelSelectorRequirement[]
}

export interface LabelSelectorRequirement {
  key: string
  operator: string
  values?: string[]
}

export interface Condition {
  type: string
  status: string
  reason?: string
  message?: string
  lastTransitionTime?: string | null
  lastUpdateTime?: string | null
  observedGeneration?: number
}

/** A place that points at an object: an event's subject, an endpoint's pod. */
export interface ObjectReference {
  kind?: string
  namespace?: string
  name?: string
  uid?: string
  apiVersion?: string
  resourceVersion?: string
  fieldPath?: string
}

/** `namespace/name`, or the name alone for what lives in no namespace. */
export function keyOf(object: ApiObject): string {
  return objectKey(object.metadata.namespace, object.metadata.name)
}

export function objectKey(namespace: string | undefined, name: string): string {
  return namespace === undefined || namespace === '' ? name : `${namespace}/${name}`
}

export function controllerOf(object: ApiObject): OwnerReference | undefined {
  return object.metadata.ownerReferences?.find((owner) => owner.controller === true)
}

export function isDeleting(object: ApiObject): boolean {
  return object.metadata.deletionTimestamp !== undefined
}
