// What our pages answer, as data. Sending it, HEAD, lengths and failures are dealt with here, once.

import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Logger } from '../lib/log.ts'
import { nextTurn } from '../lib/next-turn.ts'

export interface PageRequest {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly accept: string
  /** The body, read only when asked for; longer ones than any page expects are cut off. */
  readonly body: () => Promise<string>
}

export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** A list of parts is sent part by part, with other work in between. */
  readonly body: string | Uint8Array | readonly Uint8Array[]
}

export type Page = (request: PageRequest) => Reply | Promise<Reply>

const nosniff = { 'X-Content-Type-Options': 'nosniff' }

/** Text for people. */
export function textReply(status: number, body: string): Reply {
  return { status, headers: { 'Content-Type': 'text/plain; charset=utf-8', ...nosniff }, body }
}

/** JSON, already written. */
export function jsonReply(status: number, body: string): Reply {
  return { status, headers: { 'Content-Type': 'application/json', ...nosniff }, body }
}

/** What Go's servers say to a path that they do not have. */
export const notFound: Reply = textReply(404, '404 page not found\n')

/** Answers every request with what the page says. A page that throws is a 500 and a log line, never the end. */
export function listenerFor(page: Page, log: Logger): RequestListener {
  return (request, response) => {
    const report = (error: unknown) =>
      log.error(error, 'Cannot answer a request', { method: request.method, url: request.url })
    void answer(page, request)
      .catch((error: unknown) => {
        report(error)
        return textReply(500, 'internal error\n')
      })
      .then((reply) => send(response, reply))
      .catch((error: unknown) => {
        report(error)
        response.destroy()
      })
  }
}

async function send(response: ServerResponse, { status, headers, body }: Reply): Promise<void> {
  // Writing to a connection that is gone is reported as an event, which does not matter.
  response.on('error', () => {})
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

/** Resolves when the client has taken what was written, or has gone. */
function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off('drain', done)
      response.off('close', done)
      resolve()
    }
    response.on('drain', done)
    response.on('close', done)
    if (response.destroyed) done()
  })
}

async function answer(page: Page, request: IncomingMessage): Promise<Reply> {
  const target = request.url ?? '/'
  const question = target.indexOf('?')
  const reply = await page({
    method: request.method ?? 'GET',
    path: question < 0 ? target : target.slice(0, question),
    query: new URLSearchParams(question < 0 ? '' : target.slice(question + 1)),
    accept: request.headers.accept ?? '',
    body: () => readBody(request),
  })
  // What was sent along and not asked for must not fill up the connection.
  request.resume()
  return reply
}

const LONGEST_BODY = 4096

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    length += chunk.length
    if (length > LONGEST_BODY) break
  }
  return Buffer.concat(chunks).subarray(0, LONGEST_BODY).toString('utf8')
}
