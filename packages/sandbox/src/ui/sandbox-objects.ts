// The objects of a sandbox's API, as the page and the model know them.

import type { JsonObject } from '../../../../src/lib/json.ts'
import { JsonReader } from '../../../../src/kube/encoding/json-reader.ts'
import { StringPool } from '../../../../src/kube/encoding/string-pool.ts'
import { endpointSlices as sliceKind } from '../../../../src/kube/objects/endpoint-slice.ts'
import { services as serviceKind } from '../../../../src/kube/objects/service.ts'
import type { EndpointSlice, Service } from '../../../../src/kube/types.ts'
import type { Pod } from '../apiserver/objects/pod.ts'
import { failAnnotation } from '../apiserver/objects/pod-annotations.ts'
import type { Registry } from '../apiserver/registry/registry.ts'
import { deployments, endpointSlices, pods, replicaSets, services } from '../apiserver/resources/table.ts'
import { failureModes, type FailureMode } from '../controllers/pod-runtime.ts'
import type { DeploymentInfo, PodInfo } from '../../../../src/ui/protocol.ts'

export interface SandboxObjects {
  readonly services: readonly Service[]
  readonly slices: readonly EndpointSlice[]
  readonly selectors: ReadonlyMap<string, Readonly<Record<string, string>>>
  readonly pods: readonly PodInfo[]
  readonly deployments: readonly DeploymentInfo[]
}

/** What the page shows changes with objects of these kinds. */
export const shownKinds = [services, endpointSlices, pods, deployments] as const

/** A version of an object never changes: it is described once, and its description is the same object for as long as it is the newest. */
export class ObjectDescriptions {
  readonly #registry: Registry
  readonly #reader = new JsonReader(new StringPool())
  readonly #services = new Kept((object: object) => serviceKind.fromJson(object as JsonObject, this.#reader).object)
  readonly #slices = new Kept((object: object) => sliceKind.fromJson(object as JsonObject, this.#reader).object)
  readonly #pods = new Kept((pod: Pod) => describePod(pod, this.#registry))

  constructor(registry: Registry) {
    this.#registry = registry
  }

  describe(): SandboxObjects {
    const registry = this.#registry
    const all = registry.collection(services).list()
    return {
      services: this.#services.of(all),
      slices: this.#slices.of(registry.collection(endpointSlices).list()),
      selectors: new Map(all.map(({ key, object }) => [key, object.spec.selector ?? {}])),
      pods: this.#pods.of(registry.collection(pods).list()),
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
}

/** What was made of each object, for those of the last list. */
class Kept<From extends object, To> {
  readonly #make: (object: From) => To
  #made = new Map<From, To>()

  constructor(make: (object: From) => To) {
    this.#make = make
  }

  of(all: readonly { readonly object: From }[]): To[] {
    const before = this.#made
    this.#made = new Map(all.map(({ object }) => [object, before.get(object) ?? this.#make(object)]))
    return [...this.#made.values()]
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
