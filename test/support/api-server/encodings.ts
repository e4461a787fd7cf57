// Objects, lists, watch frames and errors as bytes, in the two encodings of the API. The bytes of an object are kept with
// it, so that listing 10,000 of them costs the copying.

import { Buffer } from 'node:buffer'
import type { ApiObject, ServedResource } from './objects.ts'
import { ProtoWriter } from './proto-writer.ts'
import { listMeta, SCHEMAS, status as statusSchema } from './schemas.ts'

export interface StatusBody {
  readonly code: number
  readonly reason: string
  readonly message: string
  readonly details?: Readonly<Record<string, unknown>>
}

export interface Encoding {
  readonly contentType: string
  readonly watchContentType: string
  list(resource: ServedResource, metadata: Readonly<Record<string, string>>, items: readonly ApiObject[]): Buffer[]
  object(object: ApiObject): Buffer
  /** One frame of a watch. */
  frame(type: string, object: ApiObject): Buffer
  errorFrame(status: StatusBody): Buffer
  status(status: StatusBody): Buffer
}

export function encodingFor(accept: string, kind: string): Encoding {
  return accept.includes(protobuf.contentType) && kind in SCHEMAS ? protobuf : json
}

function statusObject(status: StatusBody): Record<string, unknown> {
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', ...status }
}

const jsonCache = new WeakMap<ApiObject, Buffer>()

function jsonOf(object: ApiObject): Buffer {
  let bytes = jsonCache.get(object)
  if (bytes === undefined) jsonCache.set(object, (bytes = Buffer.from(JSON.stringify(object))))
  return bytes
}

export const json: Encoding = {
  contentType: 'application/json',
  watchContentType: 'application/json',
  list(resource, metadata, items) {
    const head = { kind: `${resource.kind}List`, apiVersion: resource.apiVersion, metadata }
    const chunks: Buffer[] = [Buffer.from(`${JSON.stringify(head).slice(0, -1)},"items":[`)]
    const comma = Buffer.from(',')
    for (const [index, item] of items.entries()) {
      if (index > 0) chunks.push(comma)
      chunks.push(jsonOf(item))
    }
    chunks.push(Buffer.from(']}\n'))
    return chunks
  },
  object: (object) => jsonOf(object),
  frame: (type, object) =>
    Buffer.concat([Buffer.from(`{"type":${JSON.stringify(type)},"object":`), jsonOf(object), Buffer.from('}\n')]),
  errorFrame: (status) => Buffer.from(`${JSON.stringify({ type: 'ERROR', object: statusObject(status) })}\n`),
  status: (status) => Buffer.from(JSON.stringify(statusObject(status))),
}

const MAGIC = Buffer.from('k8s\0')
const writer = new ProtoWriter()
const protobufCache = new WeakMap<ApiObject, Buffer>()

/** The message of an object, without its envelope. */
export function protobufOf(object: ApiObject): Buffer {
  let bytes = protobufCache.get(object)
  if (bytes === undefined) {
    const schema = SCHEMAS[object.kind ?? '']
    if (schema === undefined) throw new Error(`Cannot encode ${object.kind} as protobuf: no schema`)
    writer.message(schema, object)
    protobufCache.set(object, (bytes = writer.finish()))
  }
  return bytes
}

/** The envelope's beginning, up to where a raw message of this length follows. */
function envelope(apiVersion: string, kind: string, rawLength: number): Buffer {
  writer.raw(MAGIC)
  writer.nested(1, () => {
    writer.string(1, apiVersion)
    writer.string(2, kind)
  })
  writer.raw(fieldHeader(2, rawLength))
  return writer.finish()
}

function fieldHeader(number: number, length: number): Buffer {
  const bytes = [(number << 3) | 2]
  let rest = length
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80)
  bytes.push(rest)
  return Buffer.from(bytes)
}

/** contentEncoding and contentType, both empty: the API server writes them too. */
const ENVELOPE_END = Buffer.from([0x1a, 0, 0x22, 0])

function inEnvelope(apiVersion: string, kind: string, raw: Buffer): Buffer {
  return Buffer.concat([envelope(apiVersion, kind, raw.length), raw, ENVELOPE_END])
}

function encodeStatus(status: StatusBody): Buffer {
  writer.message(statusSchema, statusObject(status))
  return inEnvelope('v1', 'Status', writer.finish())
}

function watchFrame(type: string, object: Buffer): Buffer {
  writer.string(1, type)
  writer.nested(2, () => writer.bytes(1, object))
  const event = writer.finish()
  const length = Buffer.alloc(4)
  length.writeUInt32BE(event.length)
  return Buffer.concat([length, event])
}

export const protobuf: Encoding = {
  contentType: 'application/vnd.kubernetes.protobuf',
  watchContentType: 'application/vnd.kubernetes.protobuf;stream=watch',
  list(resource, metadata, items) {
    writer.nested(1, () => writer.message(listMeta, metadata))
    const raw = [writer.finish()]
    let length = raw[0]!.length
    for (const item of items) {
      const bytes = protobufOf(item)
      const header = fieldHeader(2, bytes.length)
      length += header.length + bytes.length
      raw.push(header, bytes)
    }
    return [envelope(resource.apiVersion, `${resource.kind}List`, length), ...raw, ENVELOPE_END]
  },
  object: (object) => inEnvelope(object.apiVersion ?? '', object.kind ?? '', protobufOf(object)),
  frame: (type, object) => watchFrame(type, protobuf.object(object)),
  errorFrame: (status) => watchFrame('ERROR', encodeStatus(status)),
  status: encodeStatus,
}
