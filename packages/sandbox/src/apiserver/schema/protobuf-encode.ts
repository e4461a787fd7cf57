// Objects in the API's protobuf encoding, by their schema.

import { Buffer } from 'node:buffer'
import { parseTime } from '../time.ts'
import { LENGTH_DELIMITED, ProtoWriter } from '../../../../../src/lib/proto-writer.ts'
import { messageNamed } from './schema.ts'
import type { Json, JsonObject } from '../json.ts'
import type { Field, FieldType, Message, Scalar } from './schema.ts'

const magic = Buffer.from('k8s\0', 'latin1')
/** runtime.Unknown */
const UNKNOWN = { typeMeta: 1, raw: 2, contentEncoding: 3, contentType: 4 } as const
const TYPE_META = { apiVersion: 1, kind: 2 } as const
const LIST = { metadata: 1, items: 2 } as const
const WATCH_EVENT = { type: 1, object: 2 } as const

export interface TypeMeta {
  readonly apiVersion: string
  readonly kind: string
}

// One writer for all: encoding never waits, and a fresh buffer per object would cost more than the encoding.
const writer = new ProtoWriter(64 * 1024)

/** The object's own fields, without the envelope: what a list holds of it. */
export function encodeMessage(message: Message, object: JsonObject): Buffer {
  writer.reset()
  writeFields(message, object)
  return writer.finish()
}

/** A message in the envelope that says what it is. */
export function encodeEnvelope(type: TypeMeta, raw: Uint8Array): Buffer {
  writer.reset()
  writeEnvelope(type, raw)
  return writer.finish()
}

/** A list of messages that are encoded already, in pieces that are sent one after the other. */
export function* encodeList(type: TypeMeta, metadata: JsonObject, items: readonly Uint8Array[]): Generator<Buffer> {
  const listMeta = encodeMessage(messageNamed('meta.ListMeta'), metadata)
  writer.reset()
  writer.bytes(LIST.metadata, listMeta)
  const head = writer.finish()
  const size = items.reduce((sum, { length }) => sum + 1 + varintLength(length) + length, head.length)
  writer.reset()
  writer.raw(head)
  writer.varint(size)
  writer.tag(UNKNOWN.raw, LENGTH_DELIMITED)
  writeTypeMeta(type)
  writer.raw(magic)
  yield writer.finish()
  // Many items to a piece: a piece for each would cost the server more than all of the encoding.
  for (let first = 0, next: number; first < items.length; first = next) {
    let length = 0
    for (next = first; next < items.length && length < PIECE_LENGTH; next++) length += items[next]!.length
    writer.reset()
    for (let i = next - 1; i >= first; i--) writer.bytes(LIST.items, items[i]!)
    yield writer.finish()
  }
  writer.reset()
  writer.string(UNKNOWN.contentType, '')
  writer.string(UNKNOWN.contentEncoding, '')
  yield writer.finish()
}

const PIECE_LENGTH = 64 * 1024

function varintLength(value: number): number {
  let length = 1
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) length++
  return length
}

/** One frame of a watch: four bytes of length, and the event with its object in an envelope. */
export function encodeWatchFrame(eventType: string, type: TypeMeta, raw: Uint8Array): Buffer {
  writer.reset()
  writeEnvelope(type, raw)
  writer.message(1, 0) // runtime.RawExtension.raw
  writer.message(WATCH_EVENT.object, 0)
  writer.string(WATCH_EVENT.type, eventType)
  const length = Buffer.allocUnsafe(4)
  length.writeUInt32BE(writer.length)
  writer.raw(length)
  return writer.finish()
}

function writeEnvelope(type: TypeMeta, raw: Uint8Array): void {
  writer.string(UNKNOWN.contentType, '')
  writer.string(UNKNOWN.contentEncoding, '')
  writer.bytes(UNKNOWN.raw, raw)
  writeTypeMeta(type)
  writer.raw(magic)
}

function writeTypeMeta(type: TypeMeta): void {
  const since = writer.length
  writer.string(TYPE_META.kind, type.kind)
  writer.string(TYPE_META.apiVersion, type.apiVersion)
  writer.message(UNKNOWN.typeMeta, since)
}

/** Last field first: the writer fills its buffer from the end. */
function writeFields(message: Message, object: JsonObject): void {
  for (let i = message.fields.length - 1; i >= 0; i--) {
    const field = message.fields[i]!
    if (field.inline && field.type.kind === 'message') {
      const since = writer.length
      writeFields(field.type.message, object)
      if (writer.length > since) writer.message(field.number, since)
      continue
    }
    const value = object[field.name]
    if (value !== undefined && value !== null) writeField(field, field.type, value)
  }
}

function writeField(field: Pick<Field, 'number'>, type: FieldType, value: Json): void {
  switch (type.kind) {
    case 'scalar':
      return writeScalar(field.number, type.scalar, value)
    case 'message': {
      const since = writer.length
      writeFields(type.message, value as JsonObject)
      return writer.message(field.number, since)
    }
    case 'list': {
      const elements = value as Json[]
      for (let i = elements.length - 1; i >= 0; i--) writeField(field, type.of, elements[i]!)
      return
    }
    case 'map':
      for (const [key, element] of Object.entries(value as JsonObject).reverse()) {
        const since = writer.length
        writeField({ number: 2 }, type.of, element)
        writer.string(1, key)
        writer.message(field.number, since)
      }
  }
}

function writeScalar(number: number, scalar: Scalar, value: Json): void {
  switch (scalar) {
    case 'string':
      return writer.string(number, value as string)
    case 'bool':
      return writer.int(number, value === true ? 1 : 0)
    case 'int32':
    case 'int64':
      return writer.int(number, value as number)
    case 'float64':
      return writer.double(number, value as number)
    case 'bytes':
      return writer.bytes(number, Buffer.from(value as string, 'base64'))
    case 'Raw':
    case 'Fields':
      return writeNested(number, () => writer.bytes(1, Buffer.from(JSON.stringify(value))))
    case 'Quantity':
      return writeNested(number, () => writer.string(1, value as string))
    case 'IntOrString':
      return writeNested(number, () => writeIntOrString(value as string | number))
    case 'Time':
    case 'MicroTime':
      return writeNested(number, () => writeTime(parseTime(value as string) ?? 0))
  }
}

function writeNested(number: number, write: () => void): void {
  const since = writer.length
  write()
  writer.message(number, since)
}

function writeIntOrString(value: string | number): void {
  if (typeof value === 'string') writer.string(3, value)
  else writer.int(2, value)
  writer.int(1, typeof value === 'string' ? 1 : 0)
}

function writeTime(ms: number): void {
  const seconds = Math.floor(ms / 1000)
  writer.int(2, Math.round((ms - seconds * 1000) * 1000) * 1000)
  writer.int(1, seconds)
}
