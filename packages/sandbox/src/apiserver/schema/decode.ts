// From what a client sent to the object as the API keeps it: fields checked against the schema, unknown ones left out and
// named, empty ones dropped or written as the API does, all in the API's order. What comes out is ours alone: it shares
// nothing with what went in.

import { goTypeName } from './go-type-name.ts'
import { decodeScalar, zeroOf } from './scalars.ts'
import { isJsonObject, type Json, type JsonObject } from '../json.ts'
import type { Field, FieldType, Message } from './schema.ts'

/** A value has the wrong type. The message is that of Go's decoder. */
export class TypeMismatchError extends Error {
  override readonly name = 'TypeMismatchError'
}

export interface Decoded {
  readonly value: JsonObject
  /** The paths of the fields that the schema does not know: `spec.ports[0].x`. */
  readonly unknown: readonly string[]
}

/** Names that every top-level object has beside its message's fields. */
const typeMeta: ReadonlySet<string> = new Set(['apiVersion', 'kind'])

/** Decodes a whole object. `kind` and `apiVersion` come first, and are the caller's to check. */
export function decodeObject(message: Message, source: JsonObject): Decoded {
  const context: Context = { unknown: [] }
  const value: JsonObject = { kind: source['kind'] ?? '', apiVersion: source['apiVersion'] ?? '' }
  noteUnknown(source, { message, path: '', besides: typeMeta }, context)
  decodeFields(message, source, { into: value, path: '', context })
  return { value, unknown: context.unknown }
}

interface Context {
  readonly unknown: string[]
}

interface Target {
  readonly into: JsonObject
  readonly path: string
  readonly context: Context
}

function decodeFields(message: Message, source: JsonObject, target: Target): void {
  for (const field of message.fields) {
    if (field.inline && field.type.kind === 'message') {
      decodeFields(field.type.message, source, target)
      continue
    }
    const given = source[field.name]
    const path = target.path === '' ? field.name : `${target.path}.${field.name}`
    const owner = { message, path, context: target.context }
    const value = given === undefined || given === null ? absent(field) : decodeValue(field.type, given, owner)
    if (value !== undefined && (field.optional || field.always || !isEmpty(value))) target.into[field.name] = value
  }
}

interface Owner {
  readonly message: Message
  readonly path: string
  readonly context: Context
}

function decodeValue(type: FieldType, given: Json, owner: Owner): Json {
  switch (type.kind) {
    case 'scalar':
      return decodeScalar(type.scalar, given) ?? mismatch(type, given, owner)
    case 'message': {
      if (!isJsonObject(given)) return mismatch(type, given, owner)
      noteUnknown(given, { message: type.message, path: owner.path }, owner.context)
      const into: JsonObject = {}
      decodeFields(type.message, given, { into, path: owner.path, context: owner.context })
      return into
    }
    case 'list': {
      if (!Array.isArray(given)) return mismatch(type, given, owner)
      return given.map((element, i) => decodeElement(type.of, element, { ...owner, path: `${owner.path}[${i}]` }))
    }
    case 'map': {
      if (!isJsonObject(given)) return mismatch(type, given, owner)
      // Keys are the client's own: without a prototype none of them means anything to the language.
      const into = Object.create(null) as JsonObject
      for (const key of Object.keys(given).sort()) {
        into[key] = decodeElement(type.of, given[key] ?? null, owner)
      }
      return into
    }
  }
}

/** An element of a list or a map: null is its type's zero. */
function decodeElement(type: FieldType, given: Json, owner: Owner): Json {
  if (given !== null) return decodeValue(type, given, owner)
  return type.kind === 'message' ? decodeValue(type, {}, owner) : type.kind === 'scalar' ? zeroOf(type.scalar) : null
}

function absent(field: Field): Json | undefined {
  if (!field.always) return undefined
  switch (field.type.kind) {
    case 'scalar':
      return zeroOf(field.type.scalar)
    case 'message': {
      const into: JsonObject = {}
      decodeFields(field.type.message, {}, { into, path: '', context: { unknown: [] } })
      return into
    }
    default:
      return null
  }
}

function isEmpty(value: Json): boolean {
  if (typeof value !== 'object' || value === null) return !value
  return Object.keys(value).length === 0
}

function noteUnknown(
  source: JsonObject,
  where: { message: Message; path: string; besides?: ReadonlySet<string> },
  context: Context,
): void {
  for (const name of Object.keys(source)) {
    if (where.message.byName.has(name) || where.besides?.has(name)) continue
    context.unknown.push(where.path === '' ? name : `${where.path}.${name}`)
  }
}

function mismatch(type: FieldType, given: Json, { message, path }: Owner): never {
  const place = `${message.name.split('.')[1]}.${path.replace(/\[\d+\]/g, '')}`
  throw new TypeMismatchError(
    `json: cannot unmarshal ${jsonTypeName(given)} into Go struct field ${place} of type ${goTypeName(type)}`,
  )
}

function jsonTypeName(value: Json): string {
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'boolean') return 'bool'
  return value === null ? 'null' : typeof value
}
