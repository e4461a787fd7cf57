// What is read from an EndpointSlice (discovery.k8s.io/v1), from either encoding.

import { growList } from '../../lib/grow-list.ts'
import type { Decoded, Resource } from '../resource.ts'
import type { EndpointPort, EndpointSlice, SliceEndpoint } from '../types.ts'
import type { JsonObject } from '../../lib/json.ts'
import type { JsonReader } from '../encoding/json-reader.ts'
import type { ProtoReader } from '../encoding/proto-reader.ts'
import { EMPTY_META, keyOf, metaFromJson, metaFromProtobuf, parseTime, type ObjectMeta } from './object-meta.ts'
import { parseProtocol } from './protocol.ts'

export const SERVICE_NAME_LABEL = 'kubernetes.io/service-name'
export const TRIGGER_TIME_ANNOTATION = 'endpoints.kubernetes.io/last-change-trigger-time'
/** With these begin the keys of our own annotations. */
const OUR_ANNOTATIONS = 'service.kube-proxy-ts.io/'

export const endpointSlices: Resource<EndpointSlice> = {
  name: 'endpointslices',
  kind: 'EndpointSlice',
  path: '/apis/discovery.k8s.io/v1/endpointslices',
  fromProtobuf: sliceFromProtobuf,
  fromJson: sliceFromJson,
}

interface SliceFields {
  readonly addressType: string
  readonly ports: readonly EndpointPort[]
  readonly endpoints: readonly SliceEndpoint[]
}

function finish(meta: ObjectMeta, fields: SliceFields): Decoded<EndpointSlice> {
  const object: EndpointSlice = {
    namespace: meta.namespace,
    name: meta.name,
    serviceName: meta.labels?.[SERVICE_NAME_LABEL] ?? '',
    addressType: fields.addressType,
    ports: fields.ports,
    endpoints: fields.endpoints,
    triggerTimeMs: parseTime(meta.annotations?.[TRIGGER_TIME_ANNOTATION] ?? ''),
    annotations: ourAnnotations(meta.annotations),
  }
  return { key: keyOf(meta), resourceVersion: meta.resourceVersion, object }
}

function keepKey(key: string): boolean {
  return key === SERVICE_NAME_LABEL || key === TRIGGER_TIME_ANNOTATION || key.startsWith(OUR_ANNOTATIONS)
}

function ourAnnotations(annotations: ObjectMeta['annotations']): EndpointSlice['annotations'] {
  if (annotations === undefined) return undefined
  const { [TRIGGER_TIME_ANNOTATION]: _, ...ours } = annotations
  return Object.keys(ours).length === 0 ? undefined : ours
}

function sliceFromProtobuf(reader: ProtoReader, end: number): Decoded<EndpointSlice> {
  let meta = EMPTY_META
  let addressType = ''
  let ports: readonly EndpointPort[] = []
  const endpoints: SliceEndpoint[] = []
  while (reader.pos < end) {
    switch (reader.field(end)) {
      case 1:
        meta = metaFromProtobuf(reader, keepKey)
        break
      case 2:
        decodeEndpoint(reader, endpoints)
        break
      case 3:
        ports = withPort(ports, reader)
        break
      case 4:
        addressType = reader.pooled()
        break
      default:
        reader.skip(end)
    }
  }
  return finish(meta, { addressType, ports, endpoints })
}

function decodeEndpoint(reader: ProtoReader, endpoints: SliceEndpoint[]): void {
  let address = ''
  // Absent conditions count as ready, serving, not terminating (KEP-752).
  let ready = true
  let serving = true
  let terminating = false
  let nodeName: string | undefined
  let hints: Hints = NO_HINTS
  for (const end = reader.enter(); reader.pos < end;) {
    switch (reader.field(end)) {
      case 1:
        if (address === '') address = reader.string()
        else reader.skip(end)
        break
      case 2:
        for (const conditionsEnd = reader.enter(); reader.pos < conditionsEnd;) {
          const field = reader.field(conditionsEnd)
          if (field === 1) ready = reader.bool()
          else if (field === 2) serving = reader.bool()
          else if (field === 3) terminating = reader.bool()
          else reader.skip(conditionsEnd)
        }
        break
      case 6:
        nodeName = reader.pooled()
        break
      case 8:
        hints = decodeHints(reader)
        break
      default:
        reader.skip(end)
    }
  }
  if (address === '') return
  const { zoneHints, nodeHints } = hints
  endpoints.push({ address, ready, serving, terminating, nodeName, zoneHints, nodeHints })
}

interface Hints {
  readonly zoneHints: readonly string[] | undefined
  readonly nodeHints: readonly string[] | undefined
}

const NO_HINTS: Hints = { zoneHints: undefined, nodeHints: undefined }

function decodeHints(reader: ProtoReader): Hints {
  const zones: string[] = []
  const nodes: string[] = []
  for (const end = reader.enter(); reader.pos < end;) {
    switch (reader.field(end)) {
      case 1:
        zones.push(decodeName(reader))
        break
      case 2:
        nodes.push(decodeName(reader))
        break
      default:
        reader.skip(end)
    }
  }
  return { zoneHints: hintList(zones, reader.pool), nodeHints: hintList(nodes, reader.pool) }
}

/** ForZone and ForNode have the same shape: a name. */
function decodeName(reader: ProtoReader): string {
  let name = ''
  for (const end = reader.enter(); reader.pos < end;) {
    if (reader.field(end) === 1) name = reader.pooled()
    else reader.skip(end)
  }
  return name
}

/** Almost all endpoints have one hint, or none. Equal ones share a list. */
function hintList(names: readonly string[], lists: { listOf(name: string): readonly string[] }): Hints['zoneHints'] {
  if (names.length === 0) return undefined
  return names.length === 1 ? lists.listOf(names[0]!) : names.slice()
}

function withPort(ports: readonly EndpointPort[], reader: ProtoReader): readonly EndpointPort[] {
  let name = ''
  let protocolName = ''
  let port: number | undefined
  for (const end = reader.enter(); reader.pos < end;) {
    switch (reader.field(end)) {
      case 1:
        name = reader.pooled()
        break
      case 2:
        protocolName = reader.pooled()
        break
      case 3:
        port = reader.int()
        break
      default:
        reader.skip(end)
    }
  }
  const protocol = parseProtocol(protocolName)
  return protocol === undefined ? ports : growList(ports, { name, protocol, port })
}

function sliceFromJson(json: JsonObject, reader: JsonReader): Decoded<EndpointSlice> {
  const endpoints: SliceEndpoint[] = []
  for (const endpoint of reader.objects(json['endpoints'])) {
    const address = reader.strings(endpoint['addresses']).find((text) => text !== '') ?? ''
    if (address !== '') endpoints.push(endpointFromJson(address, endpoint, reader))
  }
  const ports: EndpointPort[] = []
  for (const port of reader.objects(json['ports'])) {
    const protocol = parseProtocol(reader.pooled(port['protocol']))
    if (protocol === undefined) continue
    const number = typeof port['port'] === 'number' ? reader.int(port['port']) : undefined
    ports.push({ name: reader.pooled(port['name']), protocol, port: number })
  }
  const addressType = reader.pooled(json['addressType'])
  return finish(metaFromJson(json, reader, keepKey), { addressType, ports, endpoints })
}

function endpointFromJson(address: string, endpoint: JsonObject, reader: JsonReader): SliceEndpoint {
  const conditions = reader.object(endpoint['conditions'])
  const hints = reader.object(endpoint['hints'])
  return {
    address,
    ready: conditions['ready'] !== false,
    serving: conditions['serving'] !== false,
    terminating: conditions['terminating'] === true,
    nodeName: typeof endpoint['nodeName'] === 'string' ? reader.pooled(endpoint['nodeName']) : undefined,
    zoneHints: hintsFromJson(hints['forZones'], reader),
    nodeHints: hintsFromJson(hints['forNodes'], reader),
  }
}

function hintsFromJson(value: unknown, reader: JsonReader): readonly string[] | undefined {
  const names = reader.objects(value).map((hint) => reader.pooled(hint['name']))
  return hintList(names, reader)
}
