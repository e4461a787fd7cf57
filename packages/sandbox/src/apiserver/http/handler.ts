// From a request to the function that answers it.

import { ApiError, noSuchResource } from '../api-error.ts'
import { authenticate, authorize, authorizePath } from './users.ts'
import { HttpError, requestListener } from '../../../../../src/serve/http-server.ts'
import { isStream, notOffered } from './pod-streams.ts'
import { messageOf } from '../../../../../src/lib/errors.ts'
import { negotiate, jsonForm } from './negotiate.ts'
import { pageAt } from './pages.ts'
import { parseApiRequest, urlOf } from './api-request.ts'
import { pods } from '../resources/pod.ts'
import { errorReply, sendBytes, viewOf } from './exchange.ts'
import { serveCreate, serveDelete, serveDeleteCollection, serveUpdate } from './write-verbs.ts'
import { serveGet, serveList } from './read-verbs.ts'
import { servePatch } from './patch-verb.ts'
import { isReview, serveReview } from './review-verb.ts'
import { serveSubresource } from './subresources.ts'
import { serveWatch } from './watch.ts'
import { statusOf } from '../api-error.ts'
import type { Api, Exchange } from './exchange.ts'
import { Buffer } from 'node:buffer'
import type { Duplex } from 'node:stream'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Logger } from '../../../../../src/lib/log.ts'

export function createHandler(api: Api, log: Logger): RequestListener {
  return requestListener(
    (incoming, response) => handle(api, incoming, response),
    (error) => errorReply(toApiError(error, log)),
  )
}

function toApiError(error: unknown, log: Logger): ApiError {
  if (error instanceof ApiError) return error
  if (error instanceof HttpError) return new ApiError(error.status, 'RequestEntityTooLarge', error.message)
  log.error(error, 'The API server failed to answer a request')
  return new ApiError(500, 'InternalError', `Internal error occurred: ${messageOf(error)}`)
}

async function handle(api: Api, incoming: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = urlOf(incoming)
  const method = incoming.method ?? 'GET'
  const user = authenticate(api.users, incoming.headers.authorization)
  const page = pageAt(url.pathname)
  if (page !== undefined) {
    authorizePath(user, method, url.pathname)
    sendBytes(response, page)
    return
  }
  if (!/^\/apis?\//.test(url.pathname)) throw noSuchResource()
  const request = parseApiRequest(method, url)
  authorize(user, request)
  // Streams negotiate by themselves, and plain text is fine for logs.
  const form = isStream(request.subresource) ? jsonForm : negotiate(incoming.headers.accept)
  await serve({ api, request, user, incoming, response, form })
}

async function serve(exchange: Exchange): Promise<void> {
  const { api, request, response } = exchange
  if (request.subresource !== '') return serveSubresource(exchange)
  switch (request.verb) {
    case 'get':
      return serveGet(exchange)
    case 'list':
      return serveList(exchange)
    case 'watch':
      return serveWatch(request, response, viewOf(exchange), {
        store: api.registry.store,
        clock: api.clock,
        bookmarkIntervalMs: api.bookmarkIntervalMs,
      })
    case 'create':
      return isReview(request.resource) ? serveReview(exchange) : serveCreate(exchange)
    case 'update':
      return serveUpdate(exchange)
    case 'patch':
      return servePatch(exchange)
    case 'delete':
      return serveDelete(exchange)
    case 'deletecollection':
      return serveDeleteCollection(exchange)
  }
}

/** exec, attach and port-forward ask to turn the connection into something else. */
export function createUpgradeHandler(api: Api, log: Logger) {
  return (incoming: IncomingMessage, socket: Duplex, head: Buffer): void => {
    socket.on('error', () => {})
    upgrade(api, { incoming, socket, head }).catch((error: unknown) => refuseUpgrade(socket, toApiError(error, log)))
  }
}

interface Upgrade {
  readonly incoming: IncomingMessage
  readonly socket: Duplex
  readonly head: Buffer
}

async function upgrade(api: Api, { incoming, socket, head }: Upgrade): Promise<void> {
  const user = authenticate(api.users, incoming.headers.authorization)
  const request = parseApiRequest(incoming.method ?? 'GET', urlOf(incoming))
  authorize(user, request)
  const { subresource, query } = request
  if (!isStream(subresource) || subresource === 'log') throw noSuchResource()
  const pod = api.registry.get(pods, request).object
  const serve = subresource === 'attach' ? undefined : api.podStreams[subresource]
  if (serve === undefined) throw notOffered(subresource)
  await serve({ pod, query, incoming, socket, head })
}

function refuseUpgrade(socket: Duplex, error: ApiError): void {
  const body = JSON.stringify(statusOf(error))
  const head = [
    `HTTP/1.1 ${error.code} ${error.reason}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}
