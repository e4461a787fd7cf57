// RFC 6902: a list of operations on paths.

import { badRequest } from '../api-error.ts'
import { isJsonObject, sameJson } from '../json.ts'
import type { Json, JsonObject } from '../json.ts'

/** The document after all operations; it is left as it is. Throws a 400 or, for a failed test or path, a 422 in the API. */
export function applyJsonPatch(document: Json, operations: unknown): Json {
  if (!Array.isArray(operations))
    throw badRequest('json: cannot unmarshal object into Go value of type jsonpatch.Patch')
  // One level around the document, so that its root has a parent like everything else.
  const holder: JsonObject = { root: structuredClone(document) }
  for (const operation of operations) applyOperation(holder, operation as Json)
  return holder['root'] ?? null
}

/** An operation that the document does not allow. */
export class JsonPatchError extends Error {
  override readonly name = 'JsonPatchError'
}

function applyOperation(holder: JsonObject, operation: Json): void {
  if (!isJsonObject(operation) || typeof operation['path'] !== 'string') {
    throw badRequest('json: every operation needs an op and a path')
  }
  const path = parsePointer(operation['path'])
  const value = operation['value'] === undefined ? null : structuredClone(operation['value'])
  switch (operation['op']) {
    case 'add':
      return add(holder, path, value)
    case 'replace':
      remove(holder, path)
      return add(holder, path, value)
    case 'remove':
      remove(holder, path)
      return
    case 'move':
      return add(holder, path, remove(holder, parseFrom(operation)))
    case 'copy':
      return add(holder, path, structuredClone(read(holder, parseFrom(operation))))
    case 'test':
      if (sameJson(read(holder, path), value)) return
      throw new JsonPatchError(`testing value ${operation['path']} failed: test failed`)
    default:
      throw badRequest(`Unexpected kind: ${JSON.stringify(operation['op'])}`)
  }
}

function parseFrom(operation: JsonObject): string[] {
  if (typeof operation['from'] !== 'string') throw badRequest('json: the operation needs a from')
  return parsePointer(operation['from'])
}

function parsePointer(pointer: string): string[] {
  if (pointer === '') return ['root']
  if (!pointer.startsWith('/')) throw badRequest(`json: the path ${pointer} does not begin with '/'`)
  const parts = pointer.slice(1).split('/')
  return ['root', ...parts.map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))]
}

function read(holder: JsonObject, path: readonly string[]): Json {
  let value: Json = holder
  for (const part of path) {
    const next: Json | undefined = child(value, part)
    if (next === undefined) throw missing(path)
    value = next
  }
  return value
}

function child(value: Json, part: string): Json | undefined {
  if (Array.isArray(value)) return value[index(value, part)]
  return isJsonObject(value) && Object.hasOwn(value, part) ? value[part] : undefined
}

function add(holder: JsonObject, path: readonly string[], value: Json): void {
  const parent = read(holder, path.slice(0, -1))
  const last = path.at(-1) ?? ''
  if (Array.isArray(parent)) {
    const at = last === '-' ? parent.length : index(parent, last)
    if (at > parent.length) throw missing(path)
    parent.splice(at, 0, value)
  } else if (isJsonObject(parent)) {
    parent[last] = value
  } else {
    throw missing(path)
  }
}

function remove(holder: JsonObject, path: readonly string[]): Json {
  const removed = read(holder, path)
  const parent = read(holder, path.slice(0, -1))
  const last = path.at(-1) ?? ''
  if (Array.isArray(parent)) parent.splice(index(parent, last), 1)
  else if (isJsonObject(parent)) delete parent[last]
  return removed
}

function index(list: readonly Json[], part: string): number {
  if (!/^-?\d+$/.test(part)) throw new JsonPatchError(`Unable to access invalid index: ${part}`)
  const at = Number(part)
  return at < 0 ? list.length + at : at
}

function missing(path: readonly string[]): JsonPatchError {
  return new JsonPatchError(`the path /${path.slice(1).join('/')} does not exist in the object`)
}
