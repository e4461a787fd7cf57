// Objects from the API's protobuf encoding, by their schema. Newer kubectl sends what it creates in it.

import { Buffer } from 'node:buffer'
import { DecodeError } from '../../../../../src/kube/encoding/decode-error.ts'
import { ProtoReader } from '../../../../../src/kube/encoding/proto-reader.ts'
import { StringPool } from '../../../../../src/kube/encoding/string-pool.ts'
import { formatMicroTime, formatTime } from '../time.ts'
import type { Json, JsonObject } from '../json.ts'
import type { FieldType, Message, Scalar } from './schema.ts'
import type { TypeMeta } from './protobuf-encode.ts'

const MAGIC = 'k8s\0'
// The reader wants one; nothing here is pooled.
const pool = new StringPool()

/** What is in the envelope: the kind it names and the bytes of the message. Throws DecodeError. */
export function decodeEnvelope(bytes: Buffer): { readonly type: TypeMeta; readonly raw: Buffer } {
  if (bytes.toString('latin1', 0, 4) !== MAGIC) {
    throw new DecodeError('Cannot decode protobuf: does not begin with "k8s" and a zero byte')
  }
  const reader = new ProtoReader(bytes, pool)
  reader.pos = 4
  const type = { apiVersion: '', kind: '' }
  let raw: Buffer = Buffer.alloc(0)
  while (reader.pos < bytes.length) {
    switch (reader.field(bytes.length)) {
      case 1:
        for (const end = reader.enter(); reader.pos < end;) {
          const field = reader.field(end)
          if (field === 1) type.apiVersion = reader.string()
          else if (field === 2) type.kind = reader.string()
          else reader.skip(end)
        }
        break
      case 2:
        raw = readBytes(reader)
        break
      default:
        reader.skip(bytes.length)
    }
  }
  return { type, raw }
}

/** The message's fields as JSON. Go writes zeros where nothing was set, so those of no meaning are left out. */
export function decodeMessage(message: Message, raw: Buffer): JsonObject {
  const reader = new ProtoReader(raw, pool)
  return readMessage(reader, message, { end: raw.length, into: {} })
}

function readMessage(reader: ProtoReader, message: Message, place: { end: number; into: JsonObject }): JsonObject {
  const { end, into } = place
  while (reader.pos < end) {
    const field = message.byNumber.get(reader.field(end))
    if (field === undefined) {
      reader.skip(end)
    } else if (field.inline && field.type.kind === 'message') {
      readMessage(reader, field.type.message, { end: reader.enter(), into })
    } else if (field.type.kind === 'list') {
      const list = (into[field.name] ??= []) as Json[]
      list.push(readValue(reader, field.type.of))
    } else if (field.type.kind === 'map') {
      readEntry(reader, field.type.of, (into[field.name] ??= {}) as JsonObject)
    } else {
      const value = readValue(reader, field.type)
      if (field.optional || !isZero(value)) into[field.name] = value
    }
  }
  return into
}

function readEntry(reader: ProtoReader, type: FieldType, into: JsonObject): void {
  let key = ''
  let value: Json | undefined
  for (const end = reader.enter(); reader.pos < end;) {
    const field = reader.field(end)
    if (field === 1) key = reader.string()
    else if (field === 2) value = readValue(reader, type)
    else reader.skip(end)
  }
  into[key] = value ?? ''
}

function readValue(reader: ProtoReader, type: FieldType): Json {
  if (type.kind === 'scalar') return readScalar(reader, type.scalar)
  if (type.kind === 'message') return readMessage(reader, type.message, { end: reader.enter(), into: {} })
  throw new DecodeError('Cannot decode protobuf: a list of lists')
}

function readScalar(reader: ProtoReader, scalar: Scalar): Json {
  switch (scalar) {
    case 'string':
      return reader.string()
    case 'bool':
      return reader.bool()
    case 'int32':
    case 'int64':
      return reader.int()
    case 'float64':
      reader.pos += 8
      return reader.bytes.readDoubleLE(reader.pos - 8)
    case 'bytes':
      return readBytes(reader).toString('base64')
    case 'Raw':
    case 'Fields':
      return JSON.parse((readParts(reader).get(1) as Buffer | undefined)?.toString() || 'null') as Json
    case 'Quantity':
      return (readParts(reader).get(1) as Buffer | undefined)?.toString() ?? '0'
    case 'IntOrString': {
      const parts = readParts(reader)
      return parts.get(1) === 1 ? String(parts.get(3) ?? '') : Number(parts.get(2) ?? 0)
    }
    case 'Time':
    case 'MicroTime':
      return readTime(readParts(reader), scalar === 'Time' ? formatTime : formatMicroTime)
  }
}

/** Go writes the zero time as no fields at all, or as the year 1. */
function readTime(parts: ReadonlyMap<number, number | Buffer>, format: (ms: number) => string): string | null {
  const seconds = Number(parts.get(1) ?? 0)
  if (seconds <= 0) return null
  return format(seconds * 1000 + Number(parts.get(2) ?? 0) / 1e6)
}

function readParts(reader: ProtoReader): Map<number, number | Buffer> {
  const parts = new Map<number, number | Buffer>()
  for (const end = reader.enter(); reader.pos < end;) {
    const field = reader.field(end)
    parts.set(field, reader.wireType === 0 ? reader.int() : readBytes(reader))
  }
  return parts
}

function readBytes(reader: ProtoReader): Buffer {
  const end = reader.enter()
  const bytes = reader.bytes.subarray(reader.pos, end)
  reader.pos = end
  return bytes
}

function isZero(value: Json): boolean {
  return value === null || value === '' || value === 0 || value === false
}
