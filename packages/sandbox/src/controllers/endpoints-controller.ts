// Endpoints and EndpointSlices for services that select pods.

import { endpoints, endpointSlices, nodes, pods, services } from '../apiserver/resources/table.ts'
import { formatTime, parseTime } from '../apiserver/time.ts'
import { fromMap, matchesLabels } from '../apiserver/selectors/label-selector.ts'
import { managedByLabel, planSlices, serviceNameLabel, sliceControllerName } from './slices-plan.ts'
import { isDeleting } from '../apiserver/objects/meta.ts'
import { ownerReferenceTo, placeOf } from './controller.ts'
import { planEndpoints } from './endpoints-plan.ts'
import { sameJson } from '../apiserver/json.ts'
import type { ControllerContext } from './controller.ts'
import type { EndpointSlice } from '../apiserver/objects/endpoints.ts'
import type { ObjectMeta } from '../apiserver/objects/meta.ts'
import type { Pod } from '../apiserver/objects/pod.ts'
import type { Service } from '../apiserver/objects/service.ts'
import type { DesiredSlice } from './slices-plan.ts'

/** Since when the change has been on its way: proxies measure their delay from it. */
const triggerAnnotation = 'endpoints.kubernetes.io/last-change-trigger-time'

export function startEndpointsController(context: ControllerContext): void {
  const { registry, loop } = context
  const queue = loop.queue('endpoints', (key) => {
    const service = registry.collection(services).get(key)?.object
    if (service === undefined || isDeleting(service)) removeAll(context, key)
    else if (selects(service)) sync(context, service)
  })
  const all = registry.collection(services)
  all.watchKeys(queue.add)
  registry.collection(pods).listen(({ before, after }) => {
    for (const key of servicesOf([...all.values()], [before?.object, after?.object])) queue.add(key)
  })
  // Zones come from nodes, so what is known of them is written again when they change.
  registry.collection(nodes).listen(({ before, after }) => {
    if (sameJson(before?.object.metadata.labels, after?.object.metadata.labels)) return
    for (const { key } of all.values()) queue.add(key)
  })
}

function selects({ spec }: Service): boolean {
  return spec.type !== 'ExternalName' && Object.keys(spec.selector ?? {}).length > 0
}

function servicesOf(
  all: readonly { readonly key: string; readonly object: Service }[],
  states: readonly (Pod | undefined)[],
): string[] {
  const present = states.filter((pod) => pod !== undefined)
  return all
    .filter(({ object }) => selects(object) && object.metadata.namespace === present[0]?.metadata.namespace)
    .filter(({ object }) => {
      const selector = fromMap(object.spec.selector ?? {})
      return present.some((pod) => matchesLabels(selector, pod.metadata.labels))
    })
    .map(({ key }) => key)
}

function sync(context: ControllerContext, service: Service): void {
  const { registry } = context
  const all = registry.collection(pods).objects()
  syncEndpoints(context, service, all)
  const plan = planSlices(service, {
    pods: all,
    nodes: registry.collection(nodes).objects(),
    existing: slicesOf(context, service.metadata, sliceControllerName),
  })
  const trigger = triggerTime(service, all)
  for (const desired of plan.write) writeSlice(context, service, { desired, trigger })
  for (const { metadata } of plan.remove) registry.delete(endpointSlices, metadata)
}

/** The slices of a service that one controller manages. */
export function slicesOf(
  { registry }: ControllerContext,
  service: Pick<ObjectMeta, 'namespace' | 'name'>,
  manager: string,
): EndpointSlice[] {
  return registry
    .collection(endpointSlices)
    .objects()
    .filter(
      ({ metadata: { namespace, labels } }) =>
        namespace === service.namespace &&
        labels?.[serviceNameLabel] === service.name &&
        labels?.[managedByLabel] === manager,
    )
}

/** When the service, or the pod that changed last, came to be what it is. */
function triggerTime(service: Service, all: readonly Pod[]): string {
  const times = all
    .filter(({ metadata }) => metadata.namespace === service.metadata.namespace)
    .filter(({ metadata }) => matchesLabels(fromMap(service.spec.selector ?? {}), metadata.labels))
    .flatMap(({ status }) => status.conditions?.find(({ type }) => type === 'Ready')?.lastTransitionTime ?? [])
    .map((time) => parseTime(time) ?? 0)
  const created = parseTime(service.metadata.creationTimestamp ?? '') ?? 0
  return formatTime(Math.max(created, ...times))
}

function writeSlice(
  { registry }: ControllerContext,
  service: Service,
  { desired, trigger }: { desired: DesiredSlice; trigger: string },
): void {
  const { existing, addressType, labels, ports, endpoints: members } = desired
  const content = { ports: ports.length === 0 ? null : ports, endpoints: members.length === 0 ? null : members }
  if (existing !== undefined) {
    registry.modify(endpointSlices, existing.metadata, (draft) => {
      draft.metadata.labels = labels
      draft.metadata.annotations = { ...draft.metadata.annotations, [triggerAnnotation]: trigger }
      Object.assign(draft, structuredClone(content))
    })
    return
  }
  registry.create(endpointSlices, {
    metadata: {
      generateName: `${service.metadata.name}-`,
      namespace: service.metadata.namespace,
      labels,
      annotations: { [triggerAnnotation]: trigger },
      ownerReferences: [ownerReferenceTo(service)],
    },
    addressType,
    ...content,
  })
}

function syncEndpoints({ registry }: ControllerContext, service: Service, all: readonly Pod[]): void {
  const { labels, subsets } = planEndpoints(service, all)
  const { namespace, name } = service.metadata
  const place = { namespace, name }
  const annotations = { [triggerAnnotation]: triggerTime(service, all) }
  if (registry.find(endpoints, place) === undefined) {
    registry.create(endpoints, { metadata: { ...place, labels, annotations }, subsets })
    return
  }
  registry.modify(endpoints, place, (draft) => {
    if (sameJson(draft.subsets ?? [], subsets) && sameJson(draft.metadata.labels, labels)) return
    draft.metadata.labels = labels
    draft.metadata.annotations = { ...draft.metadata.annotations, ...annotations }
    draft.subsets = structuredClone(subsets)
  })
}

/** A service that is gone takes them along. (The slices would go with their owner, but clients should not wait for that.) */
function removeAll(context: ControllerContext, key: string): void {
  const { registry } = context
  const place = placeOf(key)
  for (const { metadata } of slicesOf(context, place, sliceControllerName)) registry.delete(endpointSlices, metadata)
  registry.deleteIfThere(endpoints, place)
}
