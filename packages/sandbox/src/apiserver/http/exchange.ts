// One request and its answer, with everything that a handler needs.

import { statusOf } from '../api-error.ts'
import { contentTypes, encodeKind, encodeStored } from './encode.ts'
import { parseInclude } from './list-options.ts'
import { drained, type Reply } from '../../../../../src/serve/http-server.ts'
import type { ApiError } from '../api-error.ts'
import type { ApiRequest } from './api-request.ts'
import { Buffer } from 'node:buffer'
import type { Clock } from '../../../../../src/lib/clock.ts'
import type { Form } from './negotiate.ts'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { JsonObject } from '../json.ts'
import type { PodStreams } from './pod-streams.ts'
import type { Registry } from '../registry/registry.ts'
import type { Stored } from '../store/stored.ts'
import type { User } from './users.ts'
import type { View } from './encode.ts'

export interface Api {
  readonly registry: Registry
  readonly clock: Clock
  readonly users: readonly User[]
  readonly bookmarkIntervalMs: number
  readonly podStreams: PodStreams
}

export interface Exchange {
  readonly api: Api
  readonly request: ApiRequest
  readonly user: User
  readonly incoming: IncomingMessage
  readonly response: ServerResponse
  readonly form: Form
}

export function viewOf({ api, request, form }: Exchange): View {
  return { resource: request.resource, form, include: parseInclude(request.query), now: () => api.clock.now() }
}

export function sendStored(exchange: Exchange, code: number, stored: Stored): void {
  sendBytes(exchange.response, {
    code,
    type: contentTypes[exchange.form.encoding],
    body: encodeStored(stored, viewOf(exchange)),
  })
}

/** Sends an object of a kind that has a message: a Status, a Scale. */
export function sendKind({ response, form }: Exchange, code: number, value: JsonObject, message: string): void {
  sendBytes(response, { code, type: contentTypes[form.encoding], body: encodeKind(value, message, form) })
}

const noCache = { 'cache-control': 'no-cache, private' }

export interface Answer {
  readonly code: number
  readonly type: string
  readonly body: Buffer | string
}

export function sendBytes(response: ServerResponse, { code, type, body }: Answer): void {
  response.writeHead(code, { 'content-type': type, 'content-length': Buffer.byteLength(body), ...noCache })
  response.end(body)
}

/** Sends in pieces, no faster than they are taken. */
export async function sendPieces(
  response: ServerResponse,
  type: string,
  pieces: Iterable<Buffer | string>,
): Promise<void> {
  response.writeHead(200, { 'content-type': type, ...noCache })
  for (const piece of pieces) {
    if (response.destroyed) return
    if (!response.write(piece)) await drained(response)
  }
  response.end()
}

export function errorReply(error: ApiError): Reply {
  const headers = { 'content-type': 'application/json', ...noCache }
  const body = `${JSON.stringify(statusOf(error))}\n`
  return {
    status: error.code,
    headers: error.code === 401 ? { ...headers, 'www-authenticate': 'Bearer' } : headers,
    body,
  }
}

export function addWarnings(response: ServerResponse, warnings: readonly string[]): void {
  if (warnings.length === 0) return
  const quoted = warnings.map((text) => `299 - "${text.replace(/[\\"]/g, '\\$&').replace(/[^\x20-\x7e]/g, '?')}"`)
  response.appendHeader('warning', quoted)
}
