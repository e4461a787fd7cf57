// metadata of any object.

import type { Buffer } from 'node:buffer'
import type { JsonObject } from '../../lib/json.ts'
import { JsonReader } from '../encoding/json-reader.ts'
import { field, messageToJson, type Message } from '../encoding/message-to-json.ts'
import type { ProtoReader } from '../encoding/proto-reader.ts'
import type { Decoded, Resource } from '../resource.ts'

export type StringMap = Readonly<Record<string, string>>

export interface ObjectMeta {
  readonly name: string
  readonly namespace: string
  readonly resourceVersion: string
  /** 0 when unknown. */
  readonly createdMs: number
  readonly deleting: boolean
  /** The labels and annotations that KeepKey accepts; undefined: none. */
  readonly labels: StringMap | undefined
  readonly annotations: StringMap | undefined
}

/** Which labels and annotations to keep: most are long, and the proxy does not use them. */
export type KeepKey = (key: string) => boolean

export const EMPTY_META: ObjectMeta = {
  name: '',
  namespace: '',
  resourceVersion: '',
  createdMs: 0,
  deleting: false,
  labels: undefined,
  annotations: undefined,
}

/** `namespace/name`, or `name` for an object without a namespace; empty for one without a name, such as a bookmark. */
export function keyOf(meta: ObjectMeta): string {
  if (meta.name === '') return ''
  // join() makes one flat string, a template a tree of pieces. The key is kept.
  return meta.namespace === '' ? meta.name : [meta.namespace, meta.name].join('/')
}

export interface ResourceTable<T> {
  readonly keepKey: KeepKey
  /** The fields of the protobuf message that are read, but for the metadata. */
  readonly message: Message
  /** `json` is the object as the API has it in JSON. */
  readonly read: (meta: ObjectMeta, json: JsonObject, reader: JsonReader) => T
}

/** Reads a kind of object from both encodings. */
export function readersOf<T>({
  keepKey,
  message,
  read,
}: ResourceTable<T>): Pick<Resource<T>, 'fromProtobuf' | 'fromJson'> {
  const whole: Message = { ...message, 1: field('metadata', (reader) => metaFromProtobuf(reader, keepKey)) }
  const decoded = (meta: ObjectMeta, json: JsonObject, reader: JsonReader): Decoded<T> => ({
    key: keyOf(meta),
    resourceVersion: meta.resourceVersion,
    object: read(meta, json, reader),
  })
  return {
    fromJson: (json, reader) => decoded(metaFromJson(json, reader, keepKey), json, reader),
    fromProtobuf(reader, end) {
      const json = messageToJson(reader, end, whole)
      return decoded((json['metadata'] as ObjectMeta | undefined) ?? EMPTY_META, json, new JsonReader(reader.pool))
    },
  }
}

/** Reads k8s.io.apimachinery.pkg.apis.meta.v1.ObjectMeta. */
export function metaFromProtobuf(reader: ProtoReader, keep: KeepKey): ObjectMeta {
  let name = ''
  let namespace = ''
  let resourceVersion = ''
  let createdMs = 0
  let deleting = false
  let labels: Record<string, string> | undefined
  let annotations: Record<string, string> | undefined
  for (const end = reader.enter(); reader.pos < end;) {
    switch (reader.field(end)) {
      case 1:
        name = reader.string()
        break
      case 3:
        namespace = reader.pooled()
        break
      case 6:
        resourceVersion = reader.string()
        break
      case 8:
        createdMs = decodeTime(reader)
        break
      case 9:
        deleting = true
        reader.skip(end)
        break
      case 11:
        labels = decodeEntry(reader, keep, labels)
        break
      case 12:
        annotations = decodeEntry(reader, keep, annotations)
        break
      default:
        reader.skip(end)
    }
  }
  return { name, namespace, resourceVersion, createdMs, deleting, labels, annotations }
}

/** One entry of a map<string, string>, added to the map if `keep` accepts it. */
function decodeEntry(
  reader: ProtoReader,
  keep: KeepKey,
  map: Record<string, string> | undefined,
): Record<string, string> | undefined {
  let key = ''
  let valueStart = -1
  const end = reader.enter()
  while (reader.pos < end) {
    switch (reader.field(end)) {
      case 1:
        key = reader.pooled()
        break
      case 2:
        valueStart = reader.pos
        reader.skip(end)
        break
      default:
        reader.skip(end)
    }
  }
  if (!keep(key)) return map
  let value = ''
  if (valueStart >= 0) {
    const bytes: Buffer = reader.bytes
    reader.reset(bytes, valueStart, reader.limit)
    value = reader.string()
    reader.pos = end
  }
  map ??= {}
  map[key] = value
  return map
}

/** meta/v1.Time in milliseconds. */
function decodeTime(reader: ProtoReader): number {
  let seconds = 0
  for (const end = reader.enter(); reader.pos < end;) {
    if (reader.field(end) === 1) seconds = reader.int()
    else reader.skip(end)
  }
  return seconds * 1000
}

/** Reads `metadata` of a parsed object. */
export function metaFromJson(object: JsonObject, reader: JsonReader, keep: KeepKey): ObjectMeta {
  const meta = reader.object(object['metadata'])
  return {
    name: reader.string(meta['name']),
    namespace: reader.pooled(meta['namespace']),
    resourceVersion: reader.string(meta['resourceVersion']),
    createdMs: parseTime(reader.string(meta['creationTimestamp'])) ?? 0,
    deleting: typeof meta['deletionTimestamp'] === 'string',
    labels: keepStrings(reader.object(meta['labels']), keep),
    annotations: keepStrings(reader.object(meta['annotations']), keep),
  }
}

function keepStrings(map: JsonObject, keep: KeepKey): StringMap | undefined {
  let kept: Record<string, string> | undefined
  for (const key in map) {
    const value = map[key]
    if (typeof value !== 'string' || !keep(key)) continue
    kept ??= {}
    kept[key] = value
  }
  return kept
}

/** An RFC 3339 time in milliseconds, or undefined when it is none. */
export function parseTime(text: string): number | undefined {
  if (text === '') return undefined
  const ms = Date.parse(text)
  return Number.isNaN(ms) ? undefined : ms
}
