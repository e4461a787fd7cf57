// Protobuf messages in the shape that the API gives them in JSON, so that an object is read in one way whatever its encoding.
// A table per kind names the fields that are read. EndpointSlices, of which there are most, are read directly: that is faster
// (36 us instead of 54 us for a slice of 100 endpoints).

import type { JsonObject } from '../../lib/json.ts'
import type { ProtoReader } from './proto-reader.ts'

interface Field {
  readonly name: string
  /** `pooled`: a text that many objects have. A function reads the value itself. */
  readonly type: 'text' | 'pooled' | 'number' | Message | ((reader: ProtoReader) => unknown)
  readonly isList: boolean
}

/** The fields that are read, by their numbers. */
export type Message = Readonly<Record<number, Field>>

export function field(name: string, type: Field['type']): Field {
  return { name, type, isList: false }
}

export function list(name: string, type: Field['type']): Field {
  return { name, type, isList: true }
}

/** Reads a message that ends at `end`. */
export function messageToJson(reader: ProtoReader, end: number, message: Message): JsonObject {
  const json: Record<string, unknown> = {}
  while (reader.pos < end) {
    const known = message[reader.field(end)]
    if (known === undefined) {
      reader.skip(end)
      continue
    }
    const { name, isList } = known
    const value = readValue(reader, known.type)
    if (!isList) json[name] = value
    else if (json[name] === undefined) json[name] = [value]
    else (json[name] as unknown[]).push(value)
  }
  return json
}

function readValue(reader: ProtoReader, type: Field['type']): unknown {
  if (type === 'text') return reader.string()
  if (type === 'pooled') return reader.pooled()
  if (type === 'number') return reader.int()
  return typeof type === 'function' ? type(reader) : messageToJson(reader, reader.enter(), type)
}
