// One request and its answer, with everything that a handler needs.

import { statusOf } from '../api-error.ts'
import { contentTypes, encodeKind, encodeStored } from './encode.ts'
import { parseInclude } from './list-options.ts'
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

/** What all requests share. */
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
  /** The user that asks. */
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

export interface Answer {
  readonly code: number
  readonly type: string
  readonly body: Buffer | string
}

export function sendBytes(response: ServerResponse, { code, type, body }: Answer): void {
  response.writeHead(code, {
    'content-type': type,
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-cache, private',
  })
  response.end(body)
}

/** Sends in pieces, no faster than they are taken. */
export async function sendPieces(
  response: ServerResponse,
  type: string,
  pieces: Iterable<Buffer | string>,
): Promise<void> {
  response.writeHead(200, { 'content-type': type, 'cache-control': 'no-cache, private' })
  for (const piece of pieces) {
    if (response.destroyed) return
    if (!response.write(piece)) await roomIn(response)
  }
  response.end()
}

/** Waits until the client has taken what was sent, or is gone. */
function roomIn(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done).off('close', done)
      resolve()
    }
    response.on('drain', done).on('close', done)
  })
}

export function sendError(response: ServerResponse, error: ApiError): void {
  if (response.headersSent) {
    response.destroy()
    return
  }
  if (error.code === 401) response.setHeader('www-authenticate', 'Bearer')
  sendBytes(response, { code: error.code, type: 'application/json', body: `${JSON.stringify(statusOf(error))}\n` })
}

export function addWarnings(response: ServerResponse, warnings: readonly string[]): void {
  if (warnings.length === 0) return
  const quoted = warnings.map((text) => `299 - "${text.replace(/[\\"]/g, '\\$&').replace(/[^\x20-\x7e]/g, '?')}"`)
  response.appendHeader('warning', quoted)
}
