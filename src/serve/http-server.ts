// What all HTTP servers of this program share: limits, answers that fail, bodies, and how they begin and stop.

import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import type { AddressInfo, ListenOptions, Server as SocketServer } from 'node:net'
import { createServer, secure } from '../lib/http.ts'
import { nextTurn } from '../lib/next-turn.ts'

export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** A list of parts is sent part by part, with other work in between. */
  readonly body: string | Uint8Array | readonly Uint8Array[]
}

/** A request that is refused with this status; the message is for the client. */
export class HttpError extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

export interface ServerLimits {
  /** How long a client may take for a whole request, in ms, and at most 5 s for its head; 0: any time. */
  readonly requestTimeout?: number
  /** How long a connection may wait for the next request, in ms. */
  readonly keepAliveTimeout?: number
  readonly maxConnections?: number
  /** PEM; absent: without TLS. */
  readonly tls?: { readonly key: string; readonly cert: string }
}

/** A server with limits that keep one misbehaving client from exhausting what the program needs for its work. */
export function createHttpServer(listener: RequestListener, limits: ServerLimits = {}): Server {
  const { requestTimeout = 10_000, keepAliveTimeout = 5000, maxConnections, tls } = limits
  // Node checks the first two every half a minute by default, and more often wakes an idle proxy up.
  const headersTimeout = requestTimeout === 0 ? 0 : 5000
  const options = { headersTimeout, requestTimeout, keepAliveTimeout, connectionsCheckingInterval: 5000 }
  const server =
    tls === undefined
      ? createServer(options, listener)
      : secure.http.createServer({ ...options, ...tls, ALPNProtocols: ['http/1.1'] }, listener)
  if (maxConnections !== undefined) server.maxConnections = maxConnections
  return server
}

/**
 * `handle` sends the answer, or returns it. When it throws, the client gets what `fail` makes of the error, or the end of the
 * connection where an answer has begun already. A client that is gone gets nothing.
 */
export function requestListener(
  handle: (request: IncomingMessage, response: ServerResponse) => Reply | void | Promise<Reply | void>,
  fail: (error: unknown, request: IncomingMessage) => Reply,
): RequestListener {
  const respond = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    // Writing to a connection that is gone is reported as an event, which does not matter.
    response.on('error', () => {})
    try {
      const reply = await handle(request, response)
      if (reply !== undefined) await sendReply(response, reply)
    } catch (error) {
      if (response.destroyed) return
      const reply = fail(error, request)
      if (response.headersSent) return void response.destroy()
      // What the client may still send is not waited for.
      if (reply.status === 413) response.setHeader('Connection', 'close')
      await sendReply(response, reply)
    } finally {
      // What was sent along and not read must not fill up the connection.
      request.resume()
    }
  }
  return (request, response) => void respond(request, response)
}

export async function sendReply(response: ServerResponse, { status, headers, body }: Reply): Promise<void> {
  const parts = typeof body === 'string' || body instanceof Uint8Array ? [body] : body
  const length = parts.reduce((sum, part) => sum + Buffer.byteLength(part), 0)
  response.writeHead(status, { ...headers, 'Content-Length': length })
  for (const part of parts.slice(0, -1)) {
    if (!response.write(part)) await drained(response)
    if (response.destroyed) return
    await nextTurn()
  }
  response.end(parts.at(-1))
}

export function jsonOf(status: number, value: unknown): Reply {
  return { status, headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(value) }
}

/** Resolves when the client has taken what was written, or has gone. */
export function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done).off('close', done)
      resolve()
    }
    response.on('drain', done).on('close', done)
    if (response.destroyed) done()
  })
}

/** Rejects with a 413 for a body beyond the limit, and does not wait for the rest of it. */
export function readBody(request: IncomingMessage, limit: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let length = 0
    const add = (chunk: Buffer): void => {
      length += chunk.length
      if (length <= limit) chunks.push(chunk)
      else refuse()
    }
    const refuse = (): void => {
      request.off('data', add)
      reject(new HttpError(413, `Cannot read more than ${limit} bytes`))
    }
    if (Number(request.headers['content-length'] ?? 0) > limit) return refuse()
    request.on('data', add).on('error', reject)
    request.on('end', () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)))
  })
}

/** Rejects with what keeps the server from listening there. */
export function listenAt(server: SocketServer, where: ListenOptions & { readonly fd?: number }): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(where, () => {
      server.off('error', reject)
      resolve(server.address() as AddressInfo)
    })
  })
}

/** Stops listening at once, and ends the connections: after `graceMs`, for what was sent last to arrive. */
export function closeServer(server: Server, graceMs = 0): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    if (graceMs === 0) server.closeAllConnections()
    else setTimeout(() => server.closeAllConnections(), graceMs)
  })
}
