// The objects of all files together, and the events of a change of one file.

import { endpointSlices, SERVICE_NAME_LABEL } from '../objects/endpoint-slice.ts'
import { endpoints } from '../objects/endpoints.ts'
import { nodes } from '../objects/node.ts'
import { serviceCidrs } from '../objects/service-cidr.ts'
import { services } from '../objects/service.ts'
import type { ObjectEvent } from '../resource-handler.ts'
import type { Resource } from '../resource.ts'
import type { EndpointSlice, Node, Service, ServiceCIDR } from '../types.ts'
import type { JsonObject } from '../../lib/json.ts'
import { JsonReader } from '../encoding/json-reader.ts'
import { StringPool } from '../encoding/string-pool.ts'
import type { ManifestKind, ManifestObject } from './parse-manifest.ts'

/** The changes of each kind. */
export interface ManifestEvents {
  readonly Service: readonly ObjectEvent<Service>[]
  readonly EndpointSlice: readonly ObjectEvent<EndpointSlice>[]
  readonly Endpoints: readonly ObjectEvent<readonly EndpointSlice[]>[]
  readonly Node: readonly ObjectEvent<Node>[]
  readonly ServiceCIDR: readonly ObjectEvent<ServiceCIDR>[]
}

/** A second object of the same name, in another file or the same: the first one counts. */
export interface Duplicate {
  readonly file: string
  readonly line: number
  readonly text: string
}

interface Placed extends ManifestObject {
  readonly file: string
  readonly key: string
}

interface Delivered {
  readonly kind: ManifestKind
  readonly key: string
  readonly text: string
}

const resources: Readonly<Record<ManifestKind, Resource<unknown>>> = {
  Service: services,
  EndpointSlice: endpointSlices,
  Endpoints: endpoints,
  Node: nodes,
  ServiceCIDR: serviceCidrs,
}
const namespacedKinds: ReadonlySet<ManifestKind> = new Set(['Service', 'EndpointSlice', 'Endpoints'])

/** Objects with these labels are not for this proxy: watchCluster() excludes them by selectors. */
const NOT_FOR_US = ['service.kubernetes.io/service-proxy-name', 'service.kubernetes.io/headless']

export class ManifestSet {
  readonly #nodeName: string
  readonly #files = new Map<string, readonly ManifestObject[]>()
  readonly #reader = new JsonReader(new StringPool())
  /** By kind and key. */
  #delivered: ReadonlyMap<string, Delivered> = new Map()

  constructor(nodeName: string) {
    this.#nodeName = nodeName
  }

  /** Replaces a file's objects. */
  set(file: string, objects: readonly ManifestObject[]): void {
    this.#files.set(file, objects)
  }

  delete(file: string): void {
    this.#files.delete(file)
  }

  /** The events since the last call. */
  take(): { events: ManifestEvents; duplicates: readonly Duplicate[] } {
    const { wanted, duplicates } = this.#merge()
    const events: Record<ManifestKind, ObjectEvent<unknown>[]> = {
      Service: [],
      EndpointSlice: [],
      Endpoints: [],
      Node: [],
      ServiceCIDR: [],
    }
    const delivered = new Map<string, Delivered>()
    for (const [id, { kind, key, json }] of wanted) {
      const text = JSON.stringify(json)
      delivered.set(id, { kind, key, text })
      if (this.#delivered.get(id)?.text === text) continue
      events[kind].push({ type: 'set', key, object: resources[kind].fromJson(json, this.#reader).object })
    }
    for (const [id, { kind, key }] of this.#delivered) {
      if (!delivered.has(id)) events[kind].push({ type: 'delete', key })
    }
    this.#delivered = delivered
    return { events: events as unknown as ManifestEvents, duplicates }
  }

  #merge(): { wanted: Map<string, Placed>; duplicates: Duplicate[] } {
    const wanted = new Map<string, Placed>()
    const duplicates: Duplicate[] = []
    const names = [...this.#files.keys()].sort()
    for (const file of names) {
      for (const object of this.#files.get(file) ?? []) {
        const placed = { ...object, ...identify(object), file }
        if (!this.#isForUs(placed)) continue
        const id = `${placed.kind} ${placed.key}`
        const first = wanted.get(id)
        if (first === undefined) wanted.set(id, placed)
        else duplicates.push({ file, line: object.line, text: `${id} is already in ${first.file}, line ${first.line}` })
      }
    }
    dropMirroredEndpoints(wanted)
    return { wanted, duplicates }
  }

  #isForUs({ kind, key, json }: Placed): boolean {
    if (kind === 'Node') return key === this.#nodeName
    const labels = this.#reader.object(this.#reader.object(json['metadata'])['labels'])
    return !NOT_FOR_US.some((label) => label in labels)
  }
}

/** The object's key, and the object with its namespace filled in. */
function identify({ kind, json }: ManifestObject): { key: string; json: JsonObject } {
  const metadata = json['metadata'] as { readonly name: string; readonly namespace?: string | null }
  const { name } = metadata
  if (!namespacedKinds.has(kind)) return { key: name, json }
  const namespace = metadata.namespace ?? 'default'
  return { key: `${namespace}/${name}`, json: { ...json, metadata: { ...metadata, namespace } } }
}

/** Where a service has slices, its Endpoints have the same addresses. */
function dropMirroredEndpoints(wanted: Map<string, Placed>): void {
  const sliced = new Set<string>()
  for (const { kind, json } of wanted.values()) {
    if (kind !== 'EndpointSlice') continue
    const { namespace, labels } = json['metadata'] as { namespace: string; labels: Record<string, string> }
    sliced.add(`Endpoints ${namespace}/${labels[SERVICE_NAME_LABEL]}`)
  }
  for (const id of sliced) wanted.delete(id)
}
