// What is read from a ServiceCIDR (networking.k8s.io/v1), from either encoding.

import type { Decoded, Resource } from '../resource.ts'
import type { ServiceCIDR } from '../types.ts'
import type { JsonObject, JsonReader } from '../encoding/json-reader.ts'
import type { ProtoReader } from '../encoding/proto-reader.ts'
import { EMPTY_META, keyOf, metaFromJson, metaFromProtobuf, type ObjectMeta } from './object-meta.ts'

export const serviceCidrs: Resource<ServiceCIDR> = {
  name: 'servicecidrs',
  kind: 'ServiceCIDR',
  path: '/apis/networking.k8s.io/v1/servicecidrs',
  fromProtobuf: serviceCidrFromProtobuf,
  fromJson: serviceCidrFromJson,
}

function finish(meta: ObjectMeta, cidrs: readonly string[]): Decoded<ServiceCIDR> {
  return { key: keyOf(meta), resourceVersion: meta.resourceVersion, object: { name: meta.name, cidrs } }
}

function serviceCidrFromProtobuf(reader: ProtoReader, end: number): Decoded<ServiceCIDR> {
  let meta = EMPTY_META
  const cidrs: string[] = []
  while (reader.pos < end) {
    switch (reader.field(end)) {
      case 1:
        meta = metaFromProtobuf(reader, keepNone)
        break
      case 2:
        for (const specEnd = reader.enter(); reader.pos < specEnd;) {
          if (reader.field(specEnd) === 1) cidrs.push(reader.string())
          else reader.skip(specEnd)
        }
        break
      default:
        reader.skip(end)
    }
  }
  return finish(meta, cidrs)
}

function serviceCidrFromJson(json: JsonObject, reader: JsonReader): Decoded<ServiceCIDR> {
  return finish(metaFromJson(json, reader, keepNone), reader.strings(reader.object(json['spec'])['cidrs']))
}

function keepNone(): boolean {
  return false
}
