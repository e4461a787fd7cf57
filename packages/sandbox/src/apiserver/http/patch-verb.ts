// patch, in the three languages that there are for it.

import { acceptObject, ownKind } from './incoming-object.ts'
import { ApiError, badRequest } from '../api-error.ts'
import { applyJsonPatch, JsonPatchError } from '../patch/json-patch.ts'
import { applyMergePatch } from '../patch/merge-patch.ts'
import { applyStrategicMerge } from '../patch/strategic-merge.ts'
import { inVersion } from './encode.ts'
import { isDryRun, toStored } from './write-verbs.ts'
import { isJsonObject } from '../json.ts'
import { keptAs } from './read-verbs.ts'
import { mediaType, parseJson, readBody } from './body.ts'
import { messageNamed } from '../schema/schema.ts'
import { sendStored } from './exchange.ts'
import type { Buffer } from 'node:buffer'
import type { Exchange } from './exchange.ts'
import type { IncomingKind } from './incoming-object.ts'
import type { Json, JsonObject } from '../json.ts'
import type { Part } from '../registry/registry.ts'

export async function servePatch(exchange: Exchange, part: Part = 'all'): Promise<void> {
  const { api, request, incoming } = exchange
  const bytes = await readBody(incoming)
  const type = mediaType(incoming)
  // Before the object is looked for: it may well not exist yet.
  if (type === 'application/apply-patch+yaml') {
    throw unsupported('the sandbox does not offer server-side apply: leave out --server-side')
  }
  const resource = keptAs(request.resource)
  const current = api.registry.get(resource, request)
  const before = inVersion(request.resource, current) as unknown as JsonObject
  const patched = applyPatch(before, { bytes, type }, ownKind(exchange))
  const object = toStored(exchange, acceptObject(exchange, patched))
  const stored = api.registry.update(resource, object, { dryRun: isDryRun(request.query), part })
  sendStored(exchange, 200, stored)
}

export function applyPatch(
  before: JsonObject,
  { bytes, type }: { readonly bytes: Buffer; readonly type: string },
  kind: IncomingKind,
): JsonObject {
  const after = patchValue(before, bytes, { type, kind })
  if (!isJsonObject(after)) throw badRequest('the patch leaves no object')
  return after
}

function patchValue(before: JsonObject, bytes: Buffer, { type, kind }: { type: string; kind: IncomingKind }): Json {
  switch (type) {
    case 'application/json-patch+json':
      return jsonPatch(before, parseJson(bytes, 'patch'))
    case 'application/merge-patch+json':
      return applyMergePatch(before, parseJson(bytes, 'patch'))
    case 'application/strategic-merge-patch+json': {
      const patch = parseJson(bytes, 'patch')
      if (!isJsonObject(patch)) throw badRequest('a strategic merge patch must be an object')
      return applyStrategicMerge(before, patch, messageNamed(kind.message))
    }
    default:
      throw unsupported(
        'the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json',
      )
  }
}

function unsupported(message: string): ApiError {
  return new ApiError(415, 'UnsupportedMediaType', message)
}

function jsonPatch(before: JsonObject, patch: Json): Json {
  try {
    return applyJsonPatch(before, patch)
  } catch (error) {
    if (!(error instanceof JsonPatchError)) throw error
    throw new ApiError(
      422,
      'Invalid',
      `the server rejected our request due to an error in our request: ${error.message}`,
      {},
    )
  }
}
