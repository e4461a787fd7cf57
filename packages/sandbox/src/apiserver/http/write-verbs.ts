// create, update, delete and deletecollection.

import { sendKind, sendPieces, sendStored, viewOf } from './exchange.ts'
import { badRequest } from '../api-error.ts'
import { contentTypes, encodeItems } from './encode.ts'
import { keptAs, selectPage } from './read-verbs.ts'
import { mediaType, parseObject, readBody } from './body.ts'
import { propagationPolicies } from '../registry/deletion.ts'
import { readObject } from './incoming-object.ts'
import { Stored } from '../store/stored.ts'
import type { ApiObject } from '../objects/meta.ts'
import type { DeleteOptions } from '../registry/deletion.ts'
import type { Exchange } from './exchange.ts'
import type { JsonObject } from '../json.ts'
import type { Part } from '../registry/registry.ts'

export function isDryRun(query: URLSearchParams): boolean {
  const asked = query.getAll('dryRun')
  if (asked.some((one) => one !== 'All'))
    throw badRequest(`dryRun: Unsupported value: "${asked.join(',')}": supported values: "All"`)
  return asked.length > 0
}

/** In the version that is kept. */
export function toStored(exchange: Exchange, object: ApiObject): ApiObject {
  return exchange.request.resource.storedAs?.toStored(object) ?? object
}

export async function serveCreate(exchange: Exchange): Promise<void> {
  const { api, request } = exchange
  const object = await readObject(exchange)
  const resource = keptAs(request.resource)
  const stored = api.registry.create(resource, toStored(exchange, object), { dryRun: isDryRun(request.query) })
  sendStored(exchange, 201, stored)
}

export async function serveUpdate(exchange: Exchange, part: Part = 'all'): Promise<void> {
  const { api, request } = exchange
  const object = toStored(exchange, await readObject(exchange))
  const resource = keptAs(request.resource)
  const dryRun = isDryRun(request.query)
  const exists = api.registry.find(resource, request) !== undefined
  if (!exists && resource.createOnUpdate && part === 'all' && object.metadata.resourceVersion === undefined) {
    const created = api.registry.create(resource, object, { dryRun })
    sendStored(exchange, 201, created)
    return
  }
  const stored = api.registry.update(resource, object, { dryRun, part })
  sendStored(exchange, 200, stored)
}

export async function serveDelete(exchange: Exchange): Promise<void> {
  const { api, request } = exchange
  const resource = keptAs(request.resource)
  const options = await readDeleteOptions(exchange)
  const before = api.registry.get(resource, request)
  const left = api.registry.delete(resource, request, options)
  if (left !== undefined) {
    sendStored(exchange, 200, new Stored(before.key, left, 0))
    return
  }
  const { name, uid = '' } = before.object.metadata
  const group: JsonObject = resource.group === '' ? {} : { group: resource.group }
  const details = { name, ...group, kind: resource.plural, uid }
  sendKind(exchange, 200, { ...successStatus, details }, 'meta.Status')
}

const successStatus = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success' } as const

export async function serveDeleteCollection(exchange: Exchange): Promise<void> {
  const { api, request, response, form } = exchange
  const resource = keptAs(request.resource)
  const options = await readDeleteOptions(exchange)
  const { items, metadata } = selectPage(request, api.registry.collection(resource), api.registry.store.revision)
  for (const { object } of items) api.registry.delete(resource, object.metadata, options)
  await sendPieces(response, contentTypes[form.encoding], encodeItems(items, metadata, viewOf(exchange)))
}

const deleteOptionsKind = { kind: 'DeleteOptions', message: 'meta.DeleteOptions' } as const

/** From the body or, as curl users do, from the query. */
export async function readDeleteOptions({ incoming, request: { query } }: Exchange): Promise<DeleteOptions> {
  const bytes = await readBody(incoming)
  const body = bytes.length === 0 ? {} : parseObject(bytes, mediaType(incoming), deleteOptionsKind)
  return parseDeleteOptions(body, query)
}

export function parseDeleteOptions(body: JsonObject, query: URLSearchParams): DeleteOptions {
  const grace = body['gracePeriodSeconds'] ?? queryNumber(query, 'gracePeriodSeconds')
  const orphan = body['orphanDependents'] ?? query.get('orphanDependents')
  const asked =
    body['propagationPolicy'] ??
    query.get('propagationPolicy') ??
    (orphan === null ? undefined : [true, 'true'].includes(orphan as string) ? 'Orphan' : 'Background')
  const propagationPolicy = propagationPolicies.find((policy) => policy === asked)
  if (asked !== undefined && propagationPolicy === undefined) {
    throw badRequest(
      `invalid propagationPolicy ${JSON.stringify(asked)}: must be one of ${propagationPolicies.join(', ')}`,
    )
  }
  const preconditions = body['preconditions'] as DeleteOptions['preconditions']
  const dryRun = isDryRun(query) || (Array.isArray(body['dryRun']) && body['dryRun'].includes('All'))
  return {
    dryRun,
    ...(typeof grace === 'number' ? { gracePeriodSeconds: grace } : {}),
    ...(propagationPolicy === undefined ? {} : { propagationPolicy }),
    ...(preconditions === undefined || preconditions === null ? {} : { preconditions }),
  }
}

function queryNumber(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name)
  return text !== null && /^\d+$/.test(text) ? Number(text) : undefined
}
