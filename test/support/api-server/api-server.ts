// A small API server in memory, for tests: lists (with pages), watches (with bookmarks), creates, replaces, patches and
// deletes the objects that a proxy cares about, as JSON or protobuf, and fails on demand.
//
//   await using server = await TestApiServer.start()
//   server.store.apply({ kind: 'Service', metadata: { name: 'web' }, spec: { ... } })
//   server.fail({ on: 'watch', what: { type: 'status', status: STATUS.tooManyRequests } })

import { once } from 'node:events'
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import https from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { StatusBody } from './encodings.ts'
import { FaultPlan, type Fault } from './faults.ts'
import { ObjectStore } from './object-store.ts'
import type { ApiObject } from './objects.ts'
import { RequestHandler, type RecordedRequest } from './request-handler.ts'
import type { Watcher } from './watcher.ts'

export interface ApiServerOptions {
  readonly port?: number
  readonly host?: string
  /** Plurals that this server does not have: `['endpointslices', 'servicecidrs']` is an old one. */
  readonly without?: readonly string[]
  /** Field selectors for Services beyond metadata; an old server has none. */
  readonly serviceFieldSelectors?: readonly string[]
  /** Answer in pages of at most this many objects, also where the real one answers from memory, with everything. */
  readonly maxPage?: number
  readonly bookmarkMs?: number
  /** The counter's first value. */
  readonly firstVersion?: number
  /** Requests must carry one of these as their Authorization header. */
  readonly authorize?: (request: IncomingMessage) => boolean
  /** Key and certificate make it https. */
  readonly tls?: https.ServerOptions
  readonly store?: ObjectStore
}

export class TestApiServer implements AsyncDisposable {
  readonly store: ObjectStore
  readonly requests: RecordedRequest[] = []
  readonly #options: ApiServerOptions
  readonly #faults = new FaultPlan()
  readonly #watchers = new Set<Watcher>()
  readonly #sockets = new Set<Socket>()
  readonly #handler: RequestHandler
  #server: http.Server | undefined
  #port = 0

  private constructor(options: ApiServerOptions) {
    this.#options = options
    this.store = options.store ?? new ObjectStore(options.firstVersion)
    this.#handler = new RequestHandler({
      ...options,
      store: this.store,
      faults: this.#faults,
      watchers: this.#watchers,
      requests: this.requests,
    })
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
    return this.watchers(plural).length
  }

  watchers(plural?: string): Watcher[] {
    return [...this.#watchers].filter((watcher) => plural === undefined || watcher.resource.plural === plural)
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
    for (const watcher of this.#watchers) watcher.silence()
  }

  endWatches(): void {
    for (const watcher of this.#watchers) watcher.end()
  }

  sendBookmarks(): void {
    for (const watcher of this.#watchers) watcher.bookmark()
  }

  /** Every watch tells its whole story once more. */
  repeatEvents(): void {
    for (const watcher of this.#watchers) watcher.repeat()
  }

  sendError(status: StatusBody): void {
    for (const watcher of this.#watchers) watcher.error(status)
  }

  sendBytes(bytes: Buffer): void {
    for (const watcher of this.#watchers) watcher.sendBytes(bytes)
  }

  sendTruncated(object: ApiObject): void {
    for (const watcher of this.#watchers) watcher.truncated(object)
  }

  async stop(): Promise<void> {
    const server = this.#server
    if (server === undefined) return
    this.#server = undefined
    const closed = once(server, 'close')
    server.close()
    for (const watcher of this.#watchers) watcher.silence()
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
    const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
      void this.#handler.handle(request, response)
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
}
