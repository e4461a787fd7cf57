// What is read from a Node (core/v1), from either encoding.

import type { Decoded, Resource } from '../resource.ts'
import type { Node } from '../types.ts'
import type { JsonObject, JsonReader } from '../encoding/json-reader.ts'
import type { ProtoReader } from '../encoding/proto-reader.ts'
import { keyOf, metaFromJson, partsFromProtobuf, type ObjectMeta } from './object-meta.ts'

const ZONE_LABEL = 'topology.kubernetes.io/zone'

export const nodes: Resource<Node> = {
  name: 'nodes',
  kind: 'Node',
  path: '/api/v1/nodes',
  fromProtobuf: nodeFromProtobuf,
  fromJson: nodeFromJson,
}

interface NodeFields {
  podCIDR: string
  podCIDRs: readonly string[]
  taints: readonly string[]
  addresses: Node['addresses']
}

function finish(meta: ObjectMeta, fields: NodeFields): Decoded<Node> {
  // Servers before 1.16 know the singular only.
  const podCIDRs = fields.podCIDRs.length === 0 && fields.podCIDR !== '' ? [fields.podCIDR] : fields.podCIDRs
  const object: Node = {
    name: meta.name,
    zone: meta.labels?.[ZONE_LABEL],
    addresses: fields.addresses,
    podCIDRs,
    deleting: meta.deleting,
    taints: fields.taints,
  }
  return { key: keyOf(meta), resourceVersion: meta.resourceVersion, object }
}

function keepKey(key: string): boolean {
  return key === ZONE_LABEL
}

function nodeFromProtobuf(reader: ProtoReader, end: number): Decoded<Node> {
  const fields: NodeFields = { podCIDR: '', podCIDRs: [], taints: [], addresses: [] }
  return finish(partsFromProtobuf(reader, end, { fields, keepKey, decodeSpec, decodeStatus }), fields)
}

function decodeSpec(reader: ProtoReader, fields: NodeFields): void {
  const podCIDRs: string[] = []
  const taints: string[] = []
  for (const end = reader.enter(); reader.pos < end;) {
    switch (reader.field(end)) {
      case 1:
        fields.podCIDR = reader.string()
        break
      case 5:
        for (const taintEnd = reader.enter(); reader.pos < taintEnd;) {
          if (reader.field(taintEnd) === 1) taints.push(reader.string())
          else reader.skip(taintEnd)
        }
        break
      case 7:
        podCIDRs.push(reader.string())
        break
      default:
        reader.skip(end)
    }
  }
  fields.podCIDRs = podCIDRs
  fields.taints = taints
}

function decodeStatus(reader: ProtoReader, fields: NodeFields): void {
  const addresses: { type: string; address: string }[] = []
  for (const end = reader.enter(); reader.pos < end;) {
    if (reader.field(end) !== 5) {
      reader.skip(end)
      continue
    }
    let type = ''
    let address = ''
    for (const addressEnd = reader.enter(); reader.pos < addressEnd;) {
      const field = reader.field(addressEnd)
      if (field === 1) type = reader.pooled()
      else if (field === 2) address = reader.string()
      else reader.skip(addressEnd)
    }
    addresses.push({ type, address })
  }
  fields.addresses = addresses
}

function nodeFromJson(json: JsonObject, reader: JsonReader): Decoded<Node> {
  const spec = reader.object(json['spec'])
  const status = reader.object(json['status'])
  return finish(metaFromJson(json, reader, keepKey), {
    podCIDR: reader.string(spec['podCIDR']),
    podCIDRs: reader.strings(spec['podCIDRs']),
    taints: reader.objects(spec['taints']).map((taint) => reader.string(taint['key'])),
    addresses: reader
      .objects(status['addresses'])
      .map((entry) => ({ type: reader.pooled(entry['type']), address: reader.string(entry['address']) })),
  })
}
