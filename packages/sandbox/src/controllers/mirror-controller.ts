// Endpoints that people write by hand, for services without a selector, as the EndpointSlices that proxies read.

import { endpoints, endpointSlices, services } from '../apiserver/resources/table.ts'
import { ipFamily } from '../../../../src/lib/ip.ts'
import { managedByLabel, maxEndpointsPerSlice, serviceNameLabel } from './slices-plan.ts'
import { ownerReferenceTo, placeOf } from './controller.ts'
import { slicesOf } from './endpoints-controller.ts'
import { sameJson } from '../apiserver/json.ts'
import type { ApiObject } from '../apiserver/objects/meta.ts'
import type { ControllerContext } from './controller.ts'
import type {
  EndpointAddress,
  Endpoints,
  EndpointSlice,
  EndpointSubset,
  SliceEndpoint,
} from '../apiserver/objects/endpoints.ts'

const mirrorName = 'endpointslicemirroring-controller.k8s.io'
const skipLabel = 'endpointslice.kubernetes.io/skip-mirror'

export function startMirrorController(context: ControllerContext): void {
  const { registry, loop } = context
  const queue = loop.queue('endpointslicemirroring', (key) => sync(context, key))
  for (const resource of [endpoints, services]) {
    registry.collection<ApiObject>(resource).watchKeys(queue.add)
  }
}

function sync(context: ControllerContext, key: string): void {
  const { registry } = context
  const place = placeOf(key)
  const object = registry.find(endpoints, place)?.object
  const service = registry.find(services, place)?.object
  const desired =
    object === undefined || service === undefined || Object.keys(service.spec.selector ?? {}).length > 0
      ? []
      : planMirror(object)
  const existing = slicesOf(context, place, mirrorName)
  for (const [i, slice] of desired.entries()) writeMirror(context, { slice, existing: existing[i], endpoints: object! })
  for (const { metadata } of existing.slice(desired.length)) registry.delete(endpointSlices, metadata)
}

export type MirrorSlice = Pick<EndpointSlice, 'addressType' | 'ports' | 'endpoints'>

/** The slices for an Endpoints object: one family and one set of ports each. Pure. */
export function planMirror({ subsets = [], metadata }: Endpoints): MirrorSlice[] {
  if (metadata.labels?.[skipLabel] === 'true') return []
  return subsets.flatMap((subset) =>
    ([4, 6] as const).flatMap((family) => {
      const members = membersOf(subset, family)
      const ports = (subset.ports ?? []).map(({ name = '', port, protocol = 'TCP' }) => ({ name, port, protocol }))
      const count = Math.ceil(members.length / maxEndpointsPerSlice)
      return Array.from({ length: count }, (_, i) => ({
        addressType: `IPv${family}`,
        ports,
        endpoints: members.slice(i * maxEndpointsPerSlice, (i + 1) * maxEndpointsPerSlice),
      }))
    }),
  )
}

function membersOf({ addresses = [], notReadyAddresses = [] }: EndpointSubset, family: 4 | 6): SliceEndpoint[] {
  const convert = (ready: boolean) => (address: EndpointAddress) => ({
    addresses: [address.ip],
    conditions: { ready },
    ...(address.hostname === undefined ? {} : { hostname: address.hostname }),
    ...(address.targetRef === undefined ? {} : { targetRef: address.targetRef }),
    ...(address.nodeName === undefined ? {} : { nodeName: address.nodeName }),
  })
  return [...addresses.map(convert(true)), ...notReadyAddresses.map(convert(false))].filter(
    ({ addresses: [ip = ''] }) => ipFamily(ip) === family,
  )
}

interface Mirror {
  readonly slice: MirrorSlice
  readonly existing: EndpointSlice | undefined
  readonly endpoints: Endpoints
}

function writeMirror({ registry }: ControllerContext, { slice, existing, endpoints: source }: Mirror): void {
  const { namespace, name } = source.metadata
  if (existing !== undefined && existing.addressType === slice.addressType) {
    if (sameJson(existing.ports, slice.ports) && sameJson(existing.endpoints, slice.endpoints)) return
    registry.modify(endpointSlices, existing.metadata, (draft) => Object.assign(draft, structuredClone(slice)))
    return
  }
  if (existing !== undefined) registry.delete(endpointSlices, existing.metadata)
  registry.create(endpointSlices, {
    metadata: {
      generateName: `${name}-`,
      namespace,
      labels: { ...source.metadata.labels, [serviceNameLabel]: name, [managedByLabel]: mirrorName },
      ownerReferences: [ownerReferenceTo(source)],
    },
    ...slice,
  })
}
