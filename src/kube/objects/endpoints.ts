// Endpoints (core/v1), for API servers that have no EndpointSlices (before 1.21): each subset becomes one slice per IP
// family, so that the rest of the program knows slices only.

import { ipFamily } from '../../lib/ip.ts'
import type { Decoded, Resource } from '../resource.ts'
import type { EndpointPort, EndpointSlice, SliceEndpoint } from '../types.ts'
import type { JsonObject, JsonReader } from '../encoding/json-reader.ts'
import type { ProtoReader } from '../encoding/proto-reader.ts'
import { TRIGGER_TIME_ANNOTATION } from './endpoint-slice.ts'
import { EMPTY_META, keyOf, metaFromJson, metaFromProtobuf, parseTime, type ObjectMeta } from './object-meta.ts'
import { parseProtocol } from './protocol.ts'

/** One Endpoints object, as the slices that stand for it. */
export const endpoints: Resource<readonly EndpointSlice[]> = {
  name: 'endpoints',
  kind: 'Endpoints',
  path: '/api/v1/endpoints',
  fromProtobuf: endpointsFromProtobuf,
  fromJson: endpointsFromJson,
}

interface Subset {
  readonly endpoints: SliceEndpoint[]
  readonly ports: EndpointPort[]
}

const SLICE_FAMILIES = [
  { family: 4, addressType: 'IPv4' },
  { family: 6, addressType: 'IPv6' },
] as const

function finish(meta: ObjectMeta, subsets: readonly Subset[]): Decoded<readonly EndpointSlice[]> {
  const triggerTimeMs = parseTime(meta.annotations?.[TRIGGER_TIME_ANNOTATION] ?? '')
  const slices: EndpointSlice[] = []
  for (const [index, subset] of subsets.entries()) {
    for (const { family, addressType } of SLICE_FAMILIES) {
      const members = subset.endpoints.filter((endpoint) => ipFamily(endpoint.address) === family)
      if (members.length === 0) continue
      slices.push({
        namespace: meta.namespace,
        name: `${meta.name}-${addressType.toLowerCase()}-${index}`,
        serviceName: meta.name,
        addressType,
        ports: subset.ports,
        endpoints: members,
        triggerTimeMs,
      })
    }
  }
  return { key: keyOf(meta), resourceVersion: meta.resourceVersion, object: slices }
}

/** `ready` decides all conditions: Endpoints know no more. */
function endpointOf(address: string, nodeName: string | undefined, ready: boolean): SliceEndpoint {
  return {
    address,
    ready,
    serving: ready,
    terminating: false,
    nodeName,
    zoneHints: undefined,
    nodeHints: undefined,
  }
}

function keepKey(key: string): boolean {
  return key === TRIGGER_TIME_ANNOTATION
}

function endpointsFromProtobuf(reader: ProtoReader, end: number): Decoded<readonly EndpointSlice[]> {
  let meta = EMPTY_META
  const subsets: Subset[] = []
  while (reader.pos < end) {
    switch (reader.field(end)) {
      case 1:
        meta = metaFromProtobuf(reader, keepKey)
        break
      case 2:
        subsets.push(decodeSubset(reader))
        break
      default:
        reader.skip(end)
    }
  }
  return finish(meta, subsets)
}

function decodeSubset(reader: ProtoReader): Subset {
  const subset: Subset = { endpoints: [], ports: [] }
  for (const end = reader.enter(); reader.pos < end;) {
    const field = reader.field(end)
    if (field === 1 || field === 2) decodeAddress(reader, subset, field === 1)
    else if (field === 3) decodePort(reader, subset)
    else reader.skip(end)
  }
  return subset
}

function decodeAddress(reader: ProtoReader, subset: Subset, ready: boolean): void {
  let ip = ''
  let nodeName: string | undefined
  for (const end = reader.enter(); reader.pos < end;) {
    const field = reader.field(end)
    if (field === 1) ip = reader.string()
    else if (field === 4) nodeName = reader.pooled()
    else reader.skip(end)
  }
  subset.endpoints.push(endpointOf(ip, nodeName, ready))
}

function decodePort(reader: ProtoReader, subset: Subset): void {
  let name = ''
  let port = 0
  let protocolName = ''
  for (const end = reader.enter(); reader.pos < end;) {
    const field = reader.field(end)
    if (field === 1) name = reader.pooled()
    else if (field === 2) port = reader.int()
    else if (field === 3) protocolName = reader.pooled()
    else reader.skip(end)
  }
  const protocol = parseProtocol(protocolName)
  if (protocol !== undefined) subset.ports.push({ name, protocol, port })
}

function endpointsFromJson(json: JsonObject, reader: JsonReader): Decoded<readonly EndpointSlice[]> {
  const subsets = reader.objects(json['subsets']).map((subset) => subsetFromJson(subset, reader))
  return finish(metaFromJson(json, reader, keepKey), subsets)
}

function subsetFromJson(json: JsonObject, reader: JsonReader): Subset {
  const subset: Subset = { endpoints: [], ports: [] }
  for (const field of ['addresses', 'notReadyAddresses'] as const) {
    for (const address of reader.objects(json[field])) {
      const nodeName = typeof address['nodeName'] === 'string' ? reader.pooled(address['nodeName']) : undefined
      subset.endpoints.push(endpointOf(reader.string(address['ip']), nodeName, field === 'addresses'))
    }
  }
  for (const port of reader.objects(json['ports'])) {
    const protocol = parseProtocol(reader.pooled(port['protocol']))
    if (protocol !== undefined) {
      subset.ports.push({ name: reader.pooled(port['name']), protocol, port: reader.int(port['port']) })
    }
  }
  return subset
}
