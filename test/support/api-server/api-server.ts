// The sandbox's API server for tests: no controllers, objects that are stored as they are, over HTTP or HTTPS, and faults on
// demand, as middleware around its handler.
//
//   await using server = await TestApiServer.start()
//   server.store.apply({ kind: 'Service', metadata: { name: 'web' }, spec: { ... } })
//   server.fail({ on: 'watch', what: { type: 'status', status: STATUS.tooManyRequests } })

import { once } from 'node:events'
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import https from 'node:https'
import { Readable } from 'node:stream'
import { bootstrap } from '../../../packages/sandbox/src/apiserver/bootstrap.ts'
import { createHandler } from '../../../packages/sandbox/src/apiserver/http/handler.ts'
import { negotiate } from '../../../packages/sandbox/src/apiserver/http/negotiate.ts'
import { parseApiRequest, urlOf, type ApiRequest } from '../../../packages/sandbox/src/apiserver/http/api-request.ts'
import { readBody } from '../../../packages/sandbox/src/apiserver/http/body.ts'
import { Registry } from '../../../packages/sandbox/src/apiserver/registry/registry.ts'
import { silentLogger } from '../../../src/lib/log.ts'
import { Store } from '../../../packages/sandbox/src/apiserver/store/store.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { FaultPlan, STATUS, type Fault, type Misbehaviour } from './faults.ts'
import { misbehave } from './fault-middleware.ts'
import { OpenWatch, type WatchOptions } from './open-watches.ts'
import { UnvalidatedStore } from './unvalidated-store.ts'
import type { AddressInfo, Socket } from 'node:net'
import type { ApiObject } from './objects.ts'
import type { StatusBody } from './encodings.ts'
import type { User } from '../../../packages/sandbox/src/apiserver/http/users.ts'

export interface ApiServerOptions {
  readonly port?: number
  readonly host?: string
  /** Plurals that this server does not have: `['endpointslices', 'servicecidrs']` is an old one. */
  readonly without?: readonly string[]
  /** Field selectors beyond metadata; an old server has none. All when absent. */
  readonly serviceFieldSelectors?: readonly string[]
  /** Answer in pages of at most this many objects, also where the real one answers from memory, with everything. */
  readonly maxPage?: number
  readonly bookmarkMs?: number
  /** The counter's first value. */
  readonly firstVersion?: number
  /** Requests for which it returns false are answered with 401. */
  readonly authorize?: (request: IncomingMessage) => boolean
  /** The users that the server knows by their tokens. Without them each client may do everything, with any token or none. */
  readonly users?: readonly User[]
  /** Key and certificate make it https. */
  readonly tls?: https.ServerOptions
}

export interface RecordedRequest {
  readonly method: string
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  readonly headers: IncomingMessage['headers']
  readonly body: string
  /** When it came, on performance.now()'s clock. */
  readonly atMs: number
}

/** The user of servers that let everyone in. */
const anyone: User = { name: 'anyone', token: 'anyone' }

export class TestApiServer implements AsyncDisposable {
  readonly store: UnvalidatedStore
  readonly requests: RecordedRequest[] = []
  readonly #options: ApiServerOptions
  readonly #store = new Store()
  readonly #faults = new FaultPlan()
  readonly #watches = new Set<OpenWatch>()
  readonly #sockets = new Set<Socket>()
  readonly #handler: (incoming: IncomingMessage, response: ServerResponse) => void
  #server: http.Server | undefined
  #port = 0

  private constructor(options: ApiServerOptions) {
    this.#options = options
    this.store = new UnvalidatedStore(this.#store)
    // Without the rules of service addresses, which could not keep books of hostile objects.
    const registry = new Registry(this.#store, systemClock)
    bootstrap(registry, { serviceCidrs: [] })
    if (options.firstVersion !== undefined) this.#store.renumber(options.firstVersion)
    const { users = [anyone], bookmarkMs: bookmarkIntervalMs = 60_000 } = options
    this.#handler = createHandler(
      { registry, clock: systemClock, users, bookmarkIntervalMs, podStreams: {} },
      silentLogger,
    )
  }

  static async start(options: ApiServerOptions = {}): Promise<TestApiServer> {
    const server = new TestApiServer(options)
    await server.#listen(options.port ?? 0)
    return server
  }

  get url(): string {
    const host = this.#options.host ?? '127.0.0.1'
    return `${this.#options.tls === undefined ? 'http' : 'https'}://${host}:${this.#port}`
  }

  /** How many watches are open, of one resource (its plural) or of all. */
  watchCount(plural?: string): number {
    return [...this.#watches].filter(({ resource }) => plural === undefined || resource.plural === plural).length
  }

  /** How many connections are open. */
  get connectionCount(): number {
    return this.#sockets.size
  }

  /** Makes coming requests go wrong. */
  fail(fault: Fault): void {
    this.#faults.add(fault)
  }

  heal(): void {
    this.#faults.clear()
  }

  /** Resets every connection. */
  dropConnections(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy()
  }

  /** Open watches stay open and never say anything again: a half-open connection. */
  silenceWatches(): void {
    for (const watch of this.#watches) watch.silence()
  }

  endWatches(): void {
    for (const watch of this.#watches) watch.end()
  }

  sendBookmarks(): void {
    for (const watch of this.#watches) watch.bookmark()
  }

  /** Every watch tells its whole story once more. */
  repeatEvents(): void {
    for (const watch of this.#watches) watch.repeat()
  }

  /** From now on each client has to list again: those that watch, and those that are just about to. */
  expire(): void {
    this.store.forget()
    this.sendError(STATUS.expired)
  }

  sendError(status: StatusBody): void {
    for (const watch of this.#watches) watch.error(status)
  }

  sendBytes(bytes: Buffer): void {
    for (const watch of this.#watches) watch.sendBytes(bytes)
  }

  sendTruncated(object: ApiObject): void {
    for (const watch of this.#watches) watch.truncated(object)
  }

  async stop(): Promise<void> {
    const server = this.#server
    if (server === undefined) return
    this.#server = undefined
    const closed = once(server, 'close')
    server.close()
    this.silenceWatches()
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  /** Comes back on the same port, with the same store. */
  async restart(): Promise<void> {
    await this.stop()
    await this.#listen(this.#port)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  async #listen(port: number): Promise<void> {
    const { tls, host = '127.0.0.1' } = this.#options
    const onRequest = (incoming: IncomingMessage, response: ServerResponse): void => {
      // A client that goes away while it still sends its request needs no answer.
      this.#answer(incoming, response).catch(() => response.destroy())
    }
    const server = tls === undefined ? http.createServer(onRequest) : https.createServer(tls, onRequest)
    server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
    })
    server.listen(port, host)
    await once(server, 'listening')
    this.#server = server
    this.#port = (server.address() as AddressInfo).port
  }

  /** What stands between a client and the handler: the record of requests, what this server lacks, and the faults. */
  async #answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const copy = await this.#record(incoming)
    const request = apiRequestOf(copy)
    if (request === undefined) return this.#serve(copy, response)
    const reset = (): void => this.#reset(incoming)
    const next = (): void => {
      this.#serve(copy, response)
      this.#follow({ request, response, form: negotiate(copy.headers.accept), store: this.#store, reset })
    }
    const fault = this.#refusal(incoming, request) ?? this.#faults.take(request)
    if (fault === undefined) return next()
    const form = negotiate(copy.headers.accept)
    await misbehave(fault, { incoming: copy, response, request, form, store: this.#store, reset, next })
  }

  /** Notes the request, and gives a copy whose body can still be read, and whose headers can be changed. */
  async #record(incoming: IncomingMessage): Promise<IncomingMessage> {
    const { method = 'GET', url, headers } = incoming
    const body = method === 'GET' ? Buffer.of() : await readBody(incoming)
    const { pathname: path, searchParams } = urlOf(incoming)
    const query = Object.fromEntries(searchParams)
    this.requests.push({ method, path, query, headers, body: body.toString(), atMs: performance.now() })
    return Object.assign(Readable.from([body]), { method, url, headers: { ...headers } }) as unknown as IncomingMessage
  }

  /** What this server, by its options, does not offer, or not to this client. */
  #refusal(incoming: IncomingMessage, { resource, query }: ApiRequest): Misbehaviour | undefined {
    const { without = [], authorize, serviceFieldSelectors } = this.#options
    if (without.includes(resource.plural)) return { type: 'status', status: STATUS.notFound }
    const [field = ''] = (query.get('fieldSelector') ?? '').split(/!?=/)
    if (serviceFieldSelectors?.includes(field) === false && field.startsWith('spec.')) {
      return { type: 'status', status: { ...STATUS.badRequest, message: `field label not supported: ${field}` } }
    }
    return authorize?.(incoming) === false ? { type: 'status', status: STATUS.unauthorized } : undefined
  }

  #serve(incoming: IncomingMessage, response: ServerResponse): void {
    const { users, maxPage } = this.#options
    if (users === undefined) incoming.headers.authorization = `Bearer ${anyone.token}`
    if (maxPage !== undefined) {
      const url = urlOf(incoming)
      url.searchParams.set('limit', String(maxPage))
      incoming.url = `${url.pathname}${url.search}`
    }
    this.#handler(incoming, response)
  }

  /** A watch that the handler has opened, and not refused or ended at once, can be disturbed from now on. */
  #follow(options: WatchOptions): void {
    const { request, response } = options
    if (request.verb !== 'watch' || response.statusCode !== 200 || response.writableEnded) return
    const watch = new OpenWatch(options)
    this.#watches.add(watch)
    response.once('close', () => this.#watches.delete(watch))
  }

  /** Resets the connection of a request: below TLS, where there is any. */
  #reset({ socket: { remotePort } }: IncomingMessage): void {
    for (const socket of this.#sockets) if (socket.remotePort === remotePort) socket.resetAndDestroy()
  }
}

/** What a request is about; undefined for what is no resource of the API. */
function apiRequestOf(incoming: IncomingMessage): ApiRequest | undefined {
  try {
    return parseApiRequest(incoming.method ?? 'GET', urlOf(incoming))
  } catch {
    return undefined
  }
}
