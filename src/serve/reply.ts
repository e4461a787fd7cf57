// The pages of the healthz and metrics ports, as functions from a request to an answer.

import type { IncomingMessage, RequestListener } from 'node:http'
import type { Logger } from '../lib/log.ts'
import { HttpError, readBody, requestListener, type Reply } from './http-server.ts'

export interface PageRequest {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly accept: string
  /** The body, read only when asked for. Rejects with a 413 when it is longer than any page expects. */
  readonly body: () => Promise<string>
}

export type Page = (request: PageRequest) => Reply | Promise<Reply>

const LONGEST_BODY = 4096
const nosniff = { 'X-Content-Type-Options': 'nosniff' }

export function textReply(status: number, body: string): Reply {
  return { status, headers: { 'Content-Type': 'text/plain; charset=utf-8', ...nosniff }, body }
}

export function jsonReply(status: number, body: string): Reply {
  return { status, headers: { 'Content-Type': 'application/json', ...nosniff }, body }
}

/** What Go's servers say to a path that they do not have. */
export const notFound: Reply = textReply(404, '404 page not found\n')

/** Answers every request with the page. A page that throws is a 500 and a line in the log, and never the end of the proxy. */
export function listenerFor(page: Page, log: Logger): RequestListener {
  return requestListener(
    (request) => page(pageRequest(request)),
    (error, { method, url }) => {
      if (error instanceof HttpError) return textReply(error.status, `${error.message}\n`)
      log.error(error, 'Cannot answer a request', { method, url })
      return textReply(500, 'internal error\n')
    },
  )
}

function pageRequest(request: IncomingMessage): PageRequest {
  const target = request.url ?? '/'
  const [path = '', ...query] = target.split('?')
  return {
    method: request.method ?? 'GET',
    path,
    query: new URLSearchParams(query.join('?')),
    accept: request.headers.accept ?? '',
    body: async () => (await readBody(request, LONGEST_BODY)).toString('utf8'),
  }
}
