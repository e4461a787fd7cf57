// get and list.

import { contentTypes, encodeItems } from './encode.ts'
import {
  encodeContinue,
  parseContinue,
  parseLimit,
  parsePredicate,
  parseRevision,
  parseRevisionMatch,
} from './list-options.ts'
import { ApiError, expired } from '../api-error.ts'
import { sendPieces, sendStored, viewOf } from './exchange.ts'
import type { ApiRequest } from './api-request.ts'
import type { Collection } from '../store/collection.ts'
import type { Exchange } from './exchange.ts'
import type { JsonObject } from '../json.ts'
import type { Resource } from '../resources/resource.ts'
import type { Stored } from '../store/stored.ts'

/** The resource whose objects are kept: a second version of a kind has none of its own. */
export function keptAs(resource: Resource): Resource {
  return resource.storedAs?.resource ?? resource
}

export function serveGet(exchange: Exchange): void {
  const { api, request } = exchange
  sendStored(exchange, 200, api.registry.get(keptAs(request.resource), request))
}

export async function serveList(exchange: Exchange): Promise<void> {
  const { api, request, response, form } = exchange
  const collection = api.registry.collection(keptAs(request.resource))
  const { items, metadata } = selectPage(request, collection, api.registry.store.revision)
  await sendPieces(response, contentTypes[form.encoding], encodeItems(items, metadata, viewOf(exchange)))
}

interface ListPage {
  readonly items: readonly Stored[]
  readonly metadata: JsonObject
}

/** What a list request gets: a page of the current state, or of the state that the pages before it came from. */
export function selectPage(request: ApiRequest, collection: Collection, revision: number): ListPage {
  const limit = parseLimit(request.query)
  const predicate = parsePredicate(request)
  const token = request.query.get('continue') ?? ''
  const page = token === '' ? undefined : parseContinue(token)
  const at = page?.revision ?? exactRevision(request, revision)
  const all = at === undefined || at === revision ? collection.list() : collection.listAt(at)
  if (all === undefined) {
    throw expired(
      'The provided continue parameter is too old to display a consistent list result. Start over without it',
    )
  }
  const start = page === undefined ? 0 : firstAfter(all, page.after)
  const rest = start === 0 ? all : all.slice(start)
  const matching = predicate === undefined ? rest : rest.filter(({ object }) => predicate(object))
  const shown = at ?? revision
  if (limit === undefined || matching.length <= limit) {
    return { items: matching, metadata: { resourceVersion: String(shown) } }
  }
  const items = matching.slice(0, limit)
  const metadata: JsonObject = {
    resourceVersion: String(shown),
    continue: encodeContinue({ revision: shown, after: items.at(-1)!.key }),
  }
  // With a selector the rest is not counted, as in the API.
  const hasSelector = ['labelSelector', 'fieldSelector'].some((name) => (request.query.get(name) ?? '') !== '')
  if (!hasSelector) metadata['remainingItemCount'] = matching.length - limit
  return { items, metadata }
}

function firstAfter(all: readonly Stored[], key: string): number {
  const at = all.findIndex((stored) => stored.key > key)
  return at < 0 ? all.length : at
}

function exactRevision(request: ApiRequest, current: number): number | undefined {
  const match = parseRevisionMatch(request.query)
  const revision = parseRevision(request.query, 'list')
  if (revision === undefined) return undefined
  if (revision > current) {
    const message = `Too large resource version: ${revision}, current: ${current}`
    const causes = [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version', field: '' }]
    throw new ApiError(504, 'Timeout', `Timeout: ${message}`, { causes, retryAfterSeconds: 1 })
  }
  return match === 'Exact' ? revision : undefined
}
