// Endpoints (core/v1), for API servers without EndpointSlices (before 1.21). Each subset becomes one slice per IP family: the rest
// of the program handles slices only.

import { ipFamily } from '../../lib/ip.ts'
import type { JsonObject } from '../../lib/json.ts'
import type { JsonReader } from '../encoding/json-reader.ts'
import { field, list, type Message } from '../encoding/message-to-json.ts'
import type { Resource } from '../resource.ts'
import type { EndpointPort, EndpointSlice, SliceEndpoint } from '../types.ts'
import { TRIGGER_TIME_ANNOTATION } from './endpoint-slice.ts'
import { parseTime, readersOf, type ObjectMeta } from './object-meta.ts'
import { parseProtocol } from './protocol.ts'

const addressMessage: Message = { 1: field('ip', 'text'), 4: field('nodeName', 'pooled') }

/** One Endpoints object, as the slices that stand for it. */
export const endpoints: Resource<readonly EndpointSlice[]> = {
  name: 'endpoints',
  kind: 'Endpoints',
  path: '/api/v1/endpoints',
  ...readersOf({
    keepKey: (key) => key === TRIGGER_TIME_ANNOTATION,
    message: {
      2: list('subsets', {
        1: list('addresses', addressMessage),
        2: list('notReadyAddresses', addressMessage),
        3: list('ports', { 1: field('name', 'pooled'), 2: field('port', 'number'), 3: field('protocol', 'pooled') }),
      }),
    },
    read: (meta, json, reader) =>
      reader.objects(json['subsets']).flatMap((subset, index) => slicesOf({ meta, subset, index }, reader)),
  }),
}

const SLICE_FAMILIES = [
  { family: 4, addressType: 'IPv4' },
  { family: 6, addressType: 'IPv6' },
] as const

interface Subset {
  readonly meta: ObjectMeta
  readonly subset: JsonObject
  readonly index: number
}

function slicesOf({ meta, subset, index }: Subset, reader: JsonReader): EndpointSlice[] {
  const ports = portsOf(subset, reader)
  const endpoints = [
    ...endpointsOf(subset['addresses'], true, reader),
    ...endpointsOf(subset['notReadyAddresses'], false, reader),
  ]
  return SLICE_FAMILIES.flatMap(({ family, addressType }) => {
    const members = endpoints.filter((endpoint) => ipFamily(endpoint.address) === family)
    if (members.length === 0) return []
    return {
      namespace: meta.namespace,
      name: `${meta.name}-${addressType.toLowerCase()}-${index}`,
      serviceName: meta.name,
      addressType,
      ports,
      endpoints: members,
      triggerTimeMs: parseTime(meta.annotations?.[TRIGGER_TIME_ANNOTATION] ?? ''),
    }
  })
}

/** Endpoints have one condition: ready. */
function endpointsOf(addresses: unknown, ready: boolean, reader: JsonReader): SliceEndpoint[] {
  return reader.objects(addresses).map(({ ip, nodeName }) => ({
    address: reader.string(ip),
    ready,
    serving: ready,
    terminating: false,
    nodeName: typeof nodeName === 'string' ? reader.pooled(nodeName) : undefined,
    zoneHints: undefined,
    nodeHints: undefined,
  }))
}

function portsOf(subset: JsonObject, reader: JsonReader): EndpointPort[] {
  return reader.objects(subset['ports']).flatMap(({ name, port, protocol: text }) => {
    const protocol = parseProtocol(reader.pooled(text))
    return protocol === undefined ? [] : [{ name: reader.pooled(name), protocol, port: reader.int(port) }]
  })
}
