// RFC 6902: a list of operations on paths.

import { applyPatch, type Operation } from 'rfc6902'
import { badRequest } from '../api-error.ts'
import { isJsonObject } from '../json.ts'
import type { Json } from '../json.ts'

/** The document after all operations; the given one is not changed. Throws a 400, or a JsonPatchError. */
export function applyJsonPatch(document: Json, operations: unknown): Json {
  if (!Array.isArray(operations))
    throw badRequest('json: cannot unmarshal object into Go value of type jsonpatch.Patch')
  // One level around the document: the library cannot replace what has no parent.
  const holder = { root: structuredClone(document) }
  const failure = applyPatch(holder, operations.map(belowRoot)).find((error) => error !== null)
  if (failure === undefined) return holder.root
  if (failure.name === 'InvalidOperationError') throw badRequest(`json: ${failure.message}`)
  throw new JsonPatchError(failure.message)
}

export class JsonPatchError extends Error {
  override readonly name = 'JsonPatchError'
}

function belowRoot(operation: unknown): Operation {
  if (!isJsonObject(operation) || typeof operation['path'] !== 'string') {
    throw badRequest('json: every operation needs an op and a path')
  }
  const pointer = (path: Json): string => {
    if (typeof path === 'string' && /^(\/|$)/.test(path)) return `/root${path}`
    throw badRequest(`json: ${JSON.stringify(path)} is not a path: it must begin with '/'`)
  }
  const { path, from } = operation
  return { ...operation, path: pointer(path), ...(from === undefined ? {} : { from: pointer(from) }) } as Operation
}
