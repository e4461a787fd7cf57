// The objects of a sandbox's API, as the page and the model know them.

import { JsonReader, type JsonObject } from '../kube/encoding/json-reader.ts'
import { StringPool } from '../kube/encoding/string-pool.ts'
import { endpointSlices as sliceKind } from '../kube/objects/endpoint-slice.ts'
import { services as serviceKind } from '../kube/objects/service.ts'
import type { EndpointSlice, Service } from '../kube/types.ts'
import type { Pod } from '../sandbox/apiserver/objects/pod.ts'
import { failAnnotation } from '../sandbox/apiserver/objects/pod-wishes.ts'
import type { Registry } from '../sandbox/apiserver/registry/registry.ts'
import { deployments, endpointSlices, pods, replicaSets, services } from '../sandbox/apiserver/resources/table.ts'
import { failureModes, type FailureMode } from '../sandbox/controllers/pod-runtime.ts'
import type { DeploymentInfo, PodInfo } from './protocol.ts'

export interface SandboxObjects {
  readonly services: readonly Service[]
  readonly slices: readonly EndpointSlice[]
  readonly selectors: ReadonlyMap<string, Readonly<Record<string, string>>>
  readonly pods: readonly PodInfo[]
  readonly deployments: readonly DeploymentInfo[]
}

/** What the page shows changes with objects of these kinds. */
export const shownKinds = [services, endpointSlices, pods, deployments] as const

export function describeObjects(registry: Registry): SandboxObjects {
  const reader = new JsonReader(new StringPool())
  const json = (object: object) => object as unknown as JsonObject
  const all = registry.collection(services).list()
  return {
    services: all.map(({ object }) => serviceKind.fromJson(json(object), reader).object),
    slices: registry
      .collection(endpointSlices)
      .list()
      .map(({ object }) => sliceKind.fromJson(json(object), reader).object),
    selectors: new Map(all.map(({ key, object }) => [key, object.spec.selector ?? {}])),
    pods: registry
      .collection(pods)
      .list()
      .map(({ object }) => describePod(object, registry)),
    deployments: registry
      .collection(deployments)
      .list()
      .map(({ object: { metadata, spec, status } }) => ({
        namespace: metadata.namespace ?? '',
        name: metadata.name,
        replicas: spec.replicas ?? 0,
        ready: status.readyReplicas ?? 0,
      })),
  }
}

function describePod({ metadata, spec, status }: Pod, registry: Registry): PodInfo {
  const namespace = metadata.namespace ?? ''
  const owner = metadata.ownerReferences?.find(({ kind }) => kind === 'ReplicaSet')?.name
  const set = owner === undefined ? undefined : registry.find(replicaSets, { namespace, name: owner })?.object
  const deployment = set?.metadata.ownerReferences?.find(({ kind }) => kind === 'Deployment')?.name
  const fail = metadata.annotations?.[failAnnotation] ?? 'none'
  return {
    namespace,
    name: metadata.name,
    node: spec.nodeName ?? '',
    ips: (status.podIPs ?? []).map(({ ip }) => ip),
    phase: status.phase ?? 'Pending',
    ready: status.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true,
    terminating: metadata.deletionTimestamp !== undefined,
    fail: isFailureMode(fail) ? fail : 'none',
    labels: metadata.labels ?? {},
    deployment: deployment ?? null,
    hostNetwork: spec.hostNetwork === true,
  }
}

function isFailureMode(text: string): text is FailureMode {
  return (failureModes as readonly string[]).includes(text)
}
