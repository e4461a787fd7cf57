// The HTTP side of the test API server: from a URL to the store and back.

import { Buffer } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ApiServerOptions } from './api-server.ts'
import { encodingFor, json, type Encoding, type StatusBody } from './encodings.ts'
import type { FaultPlan, Misbehaviour } from './faults.ts'
import type { ObjectStore } from './object-store.ts'
import { RESOURCES, type ApiObject, type ServedResource } from './objects.ts'
import { parseFieldSelector, parseLabelSelector, type Selector } from './selectors.ts'
import { sendMisbehaving } from './misbehave.ts'
import { Watcher } from './watcher.ts'

export interface RecordedRequest {
  readonly method: string
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  readonly headers: IncomingMessage['headers']
  readonly body: string
  /** When it came, on performance.now()'s clock. */
  readonly atMs: number
}

export interface HandlerContext extends ApiServerOptions {
  readonly store: ObjectStore
  readonly faults: FaultPlan
  readonly watchers: Set<Watcher>
  readonly requests: RecordedRequest[]
}

/** What a URL names. */
interface Target {
  readonly resource: ServedResource
  readonly namespace: string | undefined
  readonly name: string | undefined
}

/** An error that the client is told about. */
class StatusError extends Error {
  readonly body: StatusBody

  constructor(body: StatusBody) {
    super(body.message)
    this.body = body
  }
}

export class RequestHandler {
  readonly #context: HandlerContext

  constructor(context: HandlerContext) {
    this.#context = context
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://x')
    const query = Object.fromEntries(url.searchParams)
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    const body = Buffer.concat(chunks).toString('utf8')
    const method = request.method ?? 'GET'
    const atMs = performance.now()
    this.#context.requests.push({ method, path: url.pathname, query, headers: request.headers, body, atMs })
    if (url.pathname === '/readyz' || url.pathname === '/healthz') return void response.end('ok')
    let encoding = json
    try {
      const target = this.#target(url.pathname)
      encoding = encodingFor(request.headers.accept ?? '', target.resource.kind)
      const isRead = method === 'GET' && target.name === undefined
      const kind = !isRead ? 'other' : query['watch'] === 'true' || query['watch'] === '1' ? 'watch' : 'list'
      const fault = this.#context.faults.take(kind, target.resource.plural)
      if (fault?.type === 'json') encoding = json
      if (fault?.type === 'status') throw new FaultyAnswer(fault)
      if (this.#context.authorize?.(request) === false) throw statusError(401, 'Unauthorized', 'Unauthorized')
      if (fault?.type === 'drop') return void request.socket.resetAndDestroy()
      if (fault?.type === 'hang') return
      if (fault?.type === 'delay') await new Promise((resolve) => setTimeout(resolve, fault.ms))
      if (kind === 'watch') this.#watch({ target, query, encoding, response, fault })
      else if (kind === 'list') this.#list({ target, query, encoding, response, fault })
      else this.#one(method, target, body, { encoding, response })
    } catch (error) {
      sendError(response, encoding, error)
    }
  }

  #target(path: string): Target {
    const match = /^\/(?:api\/(v1)|apis\/([^/]+\/[^/]+))\/(?:namespaces\/([^/]+)\/)?([^/]+)(?:\/([^/]+))?$/.exec(path)
    const [, core, grouped, namespace, plural, name] = match ?? []
    const resource = RESOURCES.find((known) => known.plural === plural && known.apiVersion === (core ?? grouped))
    if (resource === undefined || this.#context.without?.includes(resource.plural)) {
      throw statusError(404, 'NotFound', 'the server could not find the requested resource')
    }
    return { resource, namespace, name }
  }

  #selector(target: Target, query: Record<string, string>): Selector {
    const byLabel = parseLabelSelector(query['labelSelector'] ?? '')
    const extra = target.resource.kind === 'Service' ? (this.#context.serviceFieldSelectors ?? ['spec.clusterIP']) : []
    const text = query['fieldSelector'] ?? ''
    const byField = parseFieldSelector(text, ['metadata.name', 'metadata.namespace', ...extra])
    if (byField === undefined) throw statusError(400, 'BadRequest', `field label not supported: ${text}`)
    const { namespace } = target
    return (object) =>
      byLabel(object) && byField(object) && (namespace === undefined || object.metadata.namespace === namespace)
  }

  #list(read: Read): void {
    const { target, query, encoding, response, fault } = read
    const { store, maxPage = Number.MAX_SAFE_INTEGER } = this.#context
    const wanted = query['resourceVersion'] ?? ''
    if (Number.isNaN(Number(wanted)))
      throw statusError(500, 'InternalError', `resourceVersion: Invalid value: "${wanted}"`)
    if (Number(wanted) > store.version) throw tooLargeVersion(wanted, store.version)
    const selector = this.#selector(target, query)
    const token = query['continue'] === undefined ? undefined : parseToken(query['continue'])
    const collection = store.collection(target.resource)
    if (token !== undefined && token.version < collection.forgottenTo) {
      throw statusError(410, 'Expired', 'The provided continue parameter is too old')
    }
    // Answered from memory, a limit is ignored.
    const honoured = wanted === '' || token !== undefined
    const limit = Math.min(honoured && query['limit'] !== undefined ? Number(query['limit']) : maxPage, maxPage)
    const offset = token?.offset ?? 0
    const matching = [...collection.objects.values()].filter(selector)
    const items = fault?.type === 'empty' ? [] : matching.slice(offset, offset + limit)
    const version = token?.version ?? store.version
    const shown = fault?.type === 'version' ? fault.version : String(version)
    const metadata: Record<string, string> = { resourceVersion: shown }
    if (offset + limit < matching.length) metadata['continue'] = formatToken({ version, offset: offset + limit })
    const chunks = encoding.list(target.resource, metadata, items)
    response.setHeader('Content-Type', encoding.contentType)
    if (fault !== undefined && !SENT_WELL.has(fault.type)) return sendMisbehaving(response, chunks, fault)
    for (const chunk of batched(chunks)) response.write(chunk)
    response.end()
  }

  #watch(read: Read): void {
    const { target, query, encoding, response, fault } = read
    const { store, watchers, bookmarkMs = 60_000 } = this.#context
    const selector = this.#selector(target, query)
    const wanted = query['resourceVersion'] ?? store.version
    const version = Number(wanted)
    if (Number.isNaN(version)) throw statusError(422, 'Invalid', `resourceVersion: Invalid value: "${wanted}"`)
    response.setHeader('Content-Type', encoding.watchContentType)
    response.flushHeaders()
    if (fault?.type === 'garbage') return void response.write(fault.bytes)
    if (fault?.type === 'end') return void response.end()
    const expired = store.changesSince(target.resource, version) === undefined
    if (fault?.type === 'errorFrame' || expired) {
      const old = { code: 410, reason: 'Expired', message: `too old resource version: ${version}` }
      return void response.end(encoding.errorFrame(fault?.type === 'errorFrame' ? fault.status : old))
    }
    const watcher = new Watcher({
      response,
      store,
      resource: target.resource,
      encoding,
      selector,
      fromVersion: version,
      timeoutMs: query['timeoutSeconds'] === undefined ? undefined : Number(query['timeoutSeconds']) * 1000,
      bookmarkMs: query['allowWatchBookmarks'] === 'true' ? bookmarkMs : undefined,
    })
    watchers.add(watcher)
    response.once('close', () => watchers.delete(watcher))
  }

  /** Everything about a single object. */
  #one(method: string, target: Target, body: string, answer: Answer): void {
    const { store } = this.#context
    const { resource, namespace, name = '' } = target
    const key = resource.namespaced && namespace !== undefined ? `${namespace}/${name}` : name
    const stored = store.collection(resource).objects.get(key)
    if (method === 'POST') {
      const object = this.#parse(body, target)
      const newKey = resource.namespaced ? `${object.metadata.namespace}/${object.metadata.name}` : object.metadata.name
      if (store.collection(resource).objects.has(newKey)) throw statusError(409, 'AlreadyExists', `${newKey} exists`)
      return sendObject(answer, 201, store.apply(object))
    }
    if (stored === undefined) throw statusError(404, 'NotFound', `${resource.plural} "${name}" not found`)
    switch (method) {
      case 'GET':
        return sendObject(answer, 200, stored)
      case 'PUT':
        return sendObject(answer, 200, store.apply(this.#parse(body, target)))
      case 'PATCH':
        return sendObject(answer, 200, store.apply(mergePatch(stored, JSON.parse(body)) as ApiObject))
      case 'DELETE':
        store.delete(resource, key)
        return sendObject(answer, 200, stored)
      default:
        throw statusError(405, 'MethodNotAllowed', `${method} is not supported`)
    }
  }

  #parse(body: string, { resource, namespace }: Target): ApiObject {
    const object = JSON.parse(body) as ApiObject
    const metadata = { ...object.metadata }
    if (resource.namespaced) metadata.namespace ??= namespace ?? 'default'
    return { ...object, metadata, kind: resource.kind, apiVersion: resource.apiVersion }
  }
}

/** Lists that are wrong, or late, but whole. */
const SENT_WELL: ReadonlySet<Misbehaviour['type']> = new Set(['delay', 'empty', 'version', 'json'])

interface Answer {
  readonly encoding: Encoding
  readonly response: ServerResponse
}

interface Read extends Answer {
  readonly target: Target
  readonly query: Record<string, string>
  readonly fault: Misbehaviour | undefined
}

class FaultyAnswer extends StatusError {
  readonly retryAfterSeconds: number | undefined

  constructor(fault: Extract<Misbehaviour, { type: 'status' }>) {
    super(fault.status)
    this.retryAfterSeconds = fault.retryAfterSeconds
  }
}

function sendObject({ encoding, response }: Answer, code: number, object: ApiObject): void {
  response.writeHead(code, { 'Content-Type': encoding.contentType })
  response.end(encoding.object(object))
}

function sendError(response: ServerResponse, encoding: Encoding, error: unknown): void {
  const body =
    error instanceof StatusError ? error.body : { code: 500, reason: 'InternalError', message: String(error) }
  if (error instanceof FaultyAnswer && error.retryAfterSeconds !== undefined) {
    response.setHeader('Retry-After', String(error.retryAfterSeconds))
  }
  response.writeHead(body.code, { 'Content-Type': encoding.contentType })
  response.end(encoding.status(body))
}

function statusError(code: number, reason: string, message: string): StatusError {
  return new StatusError({ code, reason, message })
}

function tooLargeVersion(wanted: string, current: number): StatusError {
  return new StatusError({
    code: 504,
    reason: 'Timeout',
    message: `Timeout: Too large resource version: ${wanted}, current: ${current}`,
    details: { causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }] },
  })
}

interface PageToken {
  readonly version: number
  readonly offset: number
}

function formatToken(token: PageToken): string {
  return Buffer.from(JSON.stringify(token)).toString('base64url')
}

function parseToken(text: string): PageToken {
  return JSON.parse(Buffer.from(text, 'base64url').toString('utf8')) as PageToken
}

/** Small chunks joined into pieces of about 256 KB: one write each. */
function* batched(chunks: readonly Buffer[]): Iterable<Buffer> {
  let batch: Buffer[] = []
  let length = 0
  for (const chunk of chunks) {
    batch.push(chunk)
    length += chunk.length
    if (length < 256 * 1024) continue
    yield Buffer.concat(batch, length)
    batch = []
    length = 0
  }
  yield Buffer.concat(batch, length)
}

/** RFC 7386. */
function mergePatch(target: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch
  const isObject = typeof target === 'object' && target !== null && !Array.isArray(target)
  const result: Record<string, unknown> = isObject ? { ...(target as Record<string, unknown>) } : {}
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name]
    else result[name] = mergePatch(result[name], value)
  }
  return result
}
