import type { ApiObject } from '../objects/meta.ts'

/** An object without its spec and status, for clients that only look at names, labels and owners. */
export function formatMetadata(object: ApiObject, version: string): object {
  return { kind: 'PartialObjectMetadata', apiVersion: `meta.k8s.io/${version}`, metadata: object.metadata }
}
