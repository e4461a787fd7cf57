// Requests over connections that are kept alive, with credentials that are read again when they change.

import type { Buffer } from 'node:buffer'
import type { Agent, IncomingMessage, RequestOptions } from 'node:http'
import { isIP, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { systemClock, type Clock } from '../lib/clock.ts'
import { messageOf } from '../lib/errors.ts'
import { Agent as PlainAgent, request as requestPlain, secure } from '../lib/http.ts'
import type { Logger } from '../lib/log.ts'
import type { ClusterAccess } from './access/cluster-access.ts'
import { Credentials, type RequestCredentials, type TlsMaterial } from './access/credentials.ts'
import { rootsOfMachine } from './access/machine-roots.ts'
import { openTunnel, proxyFromEnvironment } from './access/proxy.ts'
import type { ApiRequest, Upgraded, UpgradingClient } from './api-client.ts'
import { ApiError } from './api-error.ts'
import { RateLimiter, type RateLimits } from './rate-limiter.ts'
import { readStart } from './read-body.ts'
import { JSON_TYPE } from './encoding/codec.ts'
import { parseStatus } from './encoding/status.ts'

/** After this silence the kernel probes a connection, and gives it up about 10 s later (libuv's probes). */
const TCP_KEEPALIVE_MS = 30_000

/** How long connecting may take, TLS included. */
const CONNECT_TIMEOUT_MS = 30_000

/** A socket that is paused stops reading at once, and not when so much has come. */
const HIGH_WATER_MARK = 1

/** How long the API server may take to begin its answer. Its own limit is 60 s. */
const RESPONSE_TIMEOUT_MS = 70_000

export interface TransportOptions {
  readonly access: ClusterAccess
  readonly userAgent: string
  /** Media types for the Accept header. */
  readonly accept: string
  readonly limits: RateLimits
  readonly log: Logger
  readonly clock?: Clock
  readonly responseTimeoutMs?: number
  /** For each request that was sent. */
  readonly onRequest?: (request: SentRequest) => void
}

/** The outcome of a request, for the metrics. */
export interface SentRequest {
  readonly method: string
  /** Of the API server, with the port. */
  readonly host: string
  /** The status; `<error>` when there was no answer, as client-go writes it. */
  readonly code: string
  /** Until the answer began; undefined for a watch, whose answer goes on. */
  readonly tookMs: number | undefined
}

export class Transport implements UpgradingClient {
  readonly server: string
  readonly #options: TransportOptions
  readonly #credentials: Credentials
  readonly #limiter: RateLimiter
  readonly #clock: Clock
  readonly #proxy: URL | undefined
  #agent: Agent | undefined
  #agentTls: TlsMaterial | undefined

  constructor(options: TransportOptions) {
    const { log } = options
    const access = withoutSecretsInTheClear(options.access, log)
    this.server = access.server.href.replace(/\/$/, '')
    this.#options = options
    this.#credentials = new Credentials(access, log)
    this.#clock = options.clock ?? systemClock
    this.#limiter = new RateLimiter(options.limits, this.#clock)
    this.#proxy = access.proxyUrl ?? proxyFromEnvironment(access.server)
  }

  async request(request: ApiRequest): Promise<IncomingMessage> {
    return (await this.#answer(request)).response
  }

  async upgrade(request: ApiRequest): Promise<Upgraded> {
    const { response, upgraded } = await this.#answer(request)
    if (upgraded !== undefined) return { response, ...upgraded }
    response.destroy()
    const { path } = request
    throw new Error(`Cannot upgrade ${path}: API server ${this.server} answered with status ${response.statusCode}`)
  }

  async #answer(request: ApiRequest): Promise<Answer> {
    await this.#limiter.acquire(request.signal)
    const answer = await this.#send(request)
    if (answer.response.statusCode !== 401 || !this.#credentials.refused()) return this.#checked(request, answer)
    answer.response.resume()
    return this.#checked(request, await this.#send(request))
  }

  close(): void {
    this.#agent?.destroy()
  }

  async #send(request: ApiRequest): Promise<Answer> {
    const credentials = await this.#credentials.current()
    const agent = this.#agentFor(credentials.tls)
    const send = () => this.#reported(request, () => this.#sendOnce(request, credentials, agent))
    try {
      return await send()
    } catch (error) {
      // The server may close an idle connection at the moment of its reuse. Then the request is sent once more.
      if (!(error instanceof StaleConnectionError) || request.signal?.aborted) throw error
      return send()
    }
  }

  async #reported({ method = 'GET', path }: ApiRequest, send: () => Promise<Answer>): Promise<Answer> {
    const startMs = this.#clock.monotonicNow()
    let code = '<error>'
    try {
      const answer = await send()
      code = String(answer.response.statusCode)
      return answer
    } finally {
      const tookMs = /[?&]watch=true/.test(path) ? undefined : this.#clock.monotonicNow() - startMs
      this.#options.onRequest?.({ method, host: this.#options.access.server.host, code, tookMs })
    }
  }

  #sendOnce(request: ApiRequest, credentials: RequestCredentials, agent: Agent): Promise<Answer> {
    const { access, userAgent, accept } = this.#options
    const url = new URL(this.server + request.path)
    const body = request.body === undefined ? undefined : JSON.stringify(request.body)
    const options: RequestOptions = {
      agent,
      method: request.method ?? 'GET',
      headers: {
        Accept: request.accept ?? accept,
        'User-Agent': userAgent,
        ...(credentials.authorization === undefined ? {} : { Authorization: credentials.authorization }),
        ...(body === undefined ? {} : { 'Content-Type': request.contentType ?? JSON_TYPE }),
        ...request.headers,
        ...(access.impersonation as Record<string, string | string[]>),
      },
      ...(request.signal === undefined ? {} : { signal: request.signal }),
    }
    return new Promise((resolve, reject) => {
      const send = url.protocol === 'https:' ? secure.http.request : requestPlain
      const outgoing = send(url, options)
      const giveUpAfter = (ms: number, what: string): NodeJS.Timeout =>
        setTimeout(() => outgoing.destroy(new Error(`no ${what} within ${ms / 1000} s`)), ms)
      let timer = giveUpAfter(CONNECT_TIMEOUT_MS, 'connection')
      outgoing.once('socket', (socket) => {
        socket.setKeepAlive(true, TCP_KEEPALIVE_MS)
        onceConnected(socket, () => {
          clearTimeout(timer)
          timer = giveUpAfter(this.#options.responseTimeoutMs ?? RESPONSE_TIMEOUT_MS, 'answer')
        })
      })
      outgoing.once('response', (response) => {
        clearTimeout(timer)
        resolve({ response })
      })
      outgoing.once('upgrade', (response, socket, head) => {
        clearTimeout(timer)
        resolve({ response, upgraded: { socket, head } })
      })
      outgoing.once('error', (error) => {
        clearTimeout(timer)
        reject(this.#connectionError(error, outgoing.reusedSocket && outgoing.method === 'GET'))
      })
      outgoing.end(body)
      // An API server that refuses to upgrade a connection closes it: the next request must not get it. (The headers turned this on.)
      if (request.headers?.['Upgrade'] !== undefined) outgoing.shouldKeepAlive = false
    })
  }

  #connectionError(error: Error, reused: boolean): Error {
    const code = (error as NodeJS.ErrnoException).code
    const message = `Cannot reach API server ${this.server}: ${messageOf(error) || code}`
    const stale = reused && (code === 'ECONNRESET' || code === 'EPIPE')
    return new (stale ? StaleConnectionError : Error)(message, { cause: error })
  }

  async #checked(request: ApiRequest, answer: Answer): Promise<Answer> {
    const { response, upgraded } = answer
    const code = response.statusCode ?? 0
    if ((code >= 200 && code < 300) || upgraded !== undefined) return answer
    const body = await readStart(response, this.#clock)
    const status = parseStatus(code, body)
    // The header wins: a load balancer may have sent it, which has no Status objects.
    const retryAfterSeconds = Number(response.headers['retry-after']) || status.retryAfterSeconds
    const action = `${(request.method ?? 'GET').toLowerCase()} ${request.path}`
    throw new ApiError(action, { ...status, retryAfterSeconds })
  }

  /** The agent for these certificates; a new one when they have changed. Requests in flight keep the old connections. */
  #agentFor(material: TlsMaterial): Agent {
    if (this.#agent !== undefined && this.#agentTls === material) return this.#agent
    if (this.#agent !== undefined) retire(this.#agent)
    this.#agentTls = material
    this.#agent = this.#createAgent(material)
    return this.#agent
  }

  #createAgent(material: TlsMaterial): Agent {
    const { server, tls } = this.#options.access
    const keepAlive = { keepAlive: true, keepAliveMsecs: TCP_KEEPALIVE_MS, highWaterMark: HIGH_WATER_MARK }
    const proxy = this.#proxy
    if (server.protocol === 'http:') {
      return proxy === undefined
        ? new PlainAgent(keepAlive)
        : tunnelled(new PlainAgent(keepAlive), { proxy, server, trusted: material.ca })
    }
    const tlsOptions = {
      rejectUnauthorized: tls.verify,
      ...(tls.serverName === undefined ? {} : { servername: tls.serverName }),
      // Without verification no authority is needed. An empty list keeps Node from reading its own.
      ca: material.ca ?? (tls.verify ? [...rootsOfMachine()] : []),
      ...(material.cert === undefined ? {} : { cert: material.cert }),
      ...(material.key === undefined ? {} : { key: material.key }),
    }
    const agent = new secure.http.Agent({ ...keepAlive, ...tlsOptions })
    if (proxy === undefined) return agent
    const host = server.hostname.replace(/^\[|\]$/g, '')
    // An address is no server name (RFC 6066): the certificate is then checked against `host`.
    const servername = isIP(host) === 0 ? host : ''
    return tunnelled(agent, { proxy, server, trusted: material.ca }, (socket) =>
      secure.tls.connect({ host, servername, ...tlsOptions, socket }),
    )
  }
}

/**
 * Over plain http every machine on the way could read the credentials, and act as this node's proxy. client-go does not send them
 * either: with an http server it ignores the user of the kubeconfig.
 */
function withoutSecretsInTheClear(access: ClusterAccess, log: Logger): ClusterAccess {
  if (access.server.protocol !== 'http:' || access.authentication.type === 'anonymous') return access
  log.warn('The API server is reached over plain http: credentials are not sent, requests are anonymous', {
    server: access.server.href,
    credentials: access.authentication.type,
  })
  return { ...access, authentication: { type: 'anonymous' } }
}

/** Closes idle connections now, and the others when they become idle: a watch may go on with its old certificate. */
function retire(agent: Agent): void {
  agent.maxFreeSockets = 0
  for (const sockets of Object.values(agent.freeSockets)) {
    for (const socket of sockets ?? []) socket.destroy()
  }
}

interface Answer {
  readonly response: IncomingMessage
  readonly upgraded?: Pick<Upgraded, 'socket' | 'head'>
}

/** A connection of the pool was dead. */
class StaleConnectionError extends Error {}

function onceConnected(socket: Socket, callback: () => void): void {
  const isHandshaking = (socket as TLSSocket & { readonly secureConnecting?: boolean }).secureConnecting === true
  if (isHandshaking) socket.once('secureConnect', callback)
  else if (socket.connecting) socket.once('connect', callback)
  else callback()
}

/** Makes the agent open its connections through the proxy. */
function tunnelled<A extends Agent>(
  agent: A,
  { proxy, server, trusted }: { proxy: URL; server: URL; trusted: Buffer | undefined },
  wrap: (socket: Duplex) => Duplex = (socket) => socket,
): A {
  // Agents accept a callback that is called later; the types lack this form.
  const open = (_options: unknown, done: (error: Error | null, socket?: Duplex) => void): void => {
    const fail = (error: unknown) => done(error instanceof Error ? error : new Error(String(error)))
    openTunnel(proxy, server, trusted).then((socket) => {
      let wrapped: Duplex
      try {
        wrapped = wrap(socket)
      } catch (error) {
        // The certificate and the key do not match: only one of two files has been replaced yet.
        socket.destroy()
        return fail(error)
      }
      done(null, wrapped)
    }, fail)
  }
  Object.assign(agent, { createConnection: open })
  return agent
}
