// patch, in the four languages that there are for it.

import { acceptObject, ownKind } from './incoming-object.ts'
import { ApiError, badRequest, notFound } from '../api-error.ts'
import { applyJsonPatch, JsonPatchError } from '../patch/json-patch.ts'
import { applyMergePatch } from '../patch/merge-patch.ts'
import { applyServerSide } from '../patch/server-side-apply.ts'
import { applyStrategicMerge } from '../patch/strategic-merge.ts'
import { inVersion } from './encode.ts'
import { isDryRun, toStored } from './write-verbs.ts'
import { isJsonObject } from '../json.ts'
import { keptAs } from './read-verbs.ts'
import { mediaType, parseJson, parseYamlText, readBody } from './body.ts'
import { messageNamed } from '../schema/schema.ts'
import { sendStored } from './exchange.ts'
import { subjectOf } from '../registry/registry.ts'
import type { Buffer } from 'node:buffer'
import type { Exchange } from './exchange.ts'
import type { IncomingKind } from './incoming-object.ts'
import type { Json, JsonObject } from '../json.ts'
import type { Part } from '../registry/registry.ts'

const applyTypes: ReadonlySet<string> = new Set(['application/apply-patch+yaml'])

export async function servePatch(exchange: Exchange, part: Part = 'all'): Promise<void> {
  const { api, request, incoming } = exchange
  const bytes = await readBody(incoming)
  const type = mediaType(incoming)
  if (applyTypes.has(type)) return serveApply(exchange, bytes, part)
  const resource = keptAs(request.resource)
  const current = api.registry.get(resource, request)
  const before = inVersion(request.resource, current) as unknown as JsonObject
  const patched = applyPatch(before, { bytes, type }, ownKind(exchange))
  const object = toStored(exchange, acceptObject(exchange, patched))
  const stored = api.registry.update(resource, object, { dryRun: isDryRun(request.query), part })
  await api.registry.store.durable()
  sendStored(exchange, 200, stored)
}

/** The object after the patch in a body. */
export function applyPatch(
  before: JsonObject,
  { bytes, type }: { readonly bytes: Buffer; readonly type: string },
  kind: IncomingKind,
): JsonObject {
  const patch = parsePatch(bytes, type)
  const after = patchValue(before, patch, { type, kind })
  if (!isJsonObject(after)) throw badRequest('the patch leaves no object')
  return after
}

function parsePatch(bytes: Buffer, type: string): Json {
  return type.endsWith('+yaml') ? parseYamlText(bytes) : parseJson(bytes, 'patch')
}

function patchValue(before: JsonObject, patch: Json, { type, kind }: { type: string; kind: IncomingKind }): Json {
  switch (type) {
    case 'application/json-patch+json':
      return jsonPatch(before, patch)
    case 'application/merge-patch+json':
      return applyMergePatch(before, patch)
    case 'application/strategic-merge-patch+json':
      if (!isJsonObject(patch)) throw badRequest('a strategic merge patch must be an object')
      return applyStrategicMerge(before, patch, messageNamed(kind.message))
    default:
      throw new ApiError(
        415,
        'UnsupportedMediaType',
        'the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml',
      )
  }
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

async function serveApply(exchange: Exchange, bytes: Buffer, part: Part): Promise<void> {
  const { api, request } = exchange
  const applied = parseYamlText(bytes)
  if (!isJsonObject(applied)) throw badRequest('what is applied must be an object')
  const manager = request.query.get('fieldManager') ?? ''
  if (manager === '')
    throw badRequest(
      'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
    )
  const resource = keptAs(request.resource)
  const dryRun = isDryRun(request.query)
  const current = api.registry.find(resource, request)
  if (current === undefined && part !== 'all') throw notFound(subjectOf(resource, request.name))
  const before = current === undefined ? undefined : (inVersion(request.resource, current) as unknown as JsonObject)
  const previous = api.applied.previous(current?.object.metadata.uid ?? '', manager)
  const merged =
    before === undefined
      ? applied
      : applyServerSide(before, { previous, applied }, messageNamed(request.resource.message))
  const object = toStored(exchange, acceptObject(exchange, merged))
  const stored =
    current === undefined
      ? api.registry.create(resource, object, { dryRun })
      : api.registry.update(resource, object, { dryRun, part })
  if (!dryRun) api.applied.remember(stored.object.metadata.uid ?? '', manager, applied)
  await api.registry.store.durable()
  sendStored(exchange, current === undefined ? 201 : 200, stored)
}
