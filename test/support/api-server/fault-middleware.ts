// What a fault does to the answer of the API server, whose handler stays as it is.

import { Buffer } from 'node:buffer'
import { setTimeout as sleep } from 'node:timers/promises'
import { encodeItems } from '../../../packages/sandbox/src/apiserver/http/encode.ts'
import { keptAs, selectPage } from '../../../packages/sandbox/src/apiserver/http/read-verbs.ts'
import { encodingOf } from './encodings.ts'
import type { ApiRequest } from '../../../packages/sandbox/src/apiserver/http/api-request.ts'
import type { Form } from '../../../packages/sandbox/src/apiserver/http/negotiate.ts'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Misbehaviour } from './faults.ts'
import type { Store } from '../../../packages/sandbox/src/apiserver/store/store.ts'

export interface FaultyExchange {
  readonly incoming: IncomingMessage
  readonly response: ServerResponse
  readonly request: ApiRequest
  readonly form: Form
  readonly store: Store
  /** Breaks the connection. */
  readonly reset: () => void
  /** Answers as the server does. */
  readonly next: () => void
}

export async function misbehave(fault: Misbehaviour, exchange: FaultyExchange): Promise<void> {
  const { incoming, response, request, form, next } = exchange
  const isWatch = request.verb === 'watch'
  switch (fault.type) {
    case 'status': {
      const encoding = encodingOf(form)
      if (fault.retryAfterSeconds !== undefined) response.setHeader('Retry-After', String(fault.retryAfterSeconds))
      response.writeHead(fault.status.code, { 'Content-Type': encoding.contentType }).end(encoding.status(fault.status))
      return
    }
    case 'drop':
      return exchange.reset()
    case 'hang':
      return
    case 'delay':
      await sleep(fault.ms)
      return next()
    case 'json':
      incoming.headers.accept = 'application/json'
      return next()
    case 'empty':
      incoming.url += `${incoming.url?.includes('?') ? '&' : '?'}labelSelector=no-object-has-this`
      return next()
    case 'version':
      return sendList(exchange, fault.version)
    case 'end':
    case 'errorFrame':
      beginWatch(exchange)
      response.end(fault.type === 'end' ? undefined : encodingOf(form).errorFrame(fault.status))
      return
    case 'garbage':
      if (isWatch) beginWatch(exchange).write(fault.bytes)
      else captureBody(exchange, () => response.end(fault.bytes))
      return
    case 'cut':
      return captureBody(exchange, (bytes) => response.write(bytes.subarray(0, fault.afterBytes), exchange.reset))
    case 'slow':
      return captureBody(exchange, (bytes) => void sendSlowly(response, bytes, fault))
  }
}

/** The head of a watch that is as it should be. */
function beginWatch({ response, form }: FaultyExchange): ServerResponse {
  response.writeHead(200, { 'Content-Type': encodingOf(form).watchContentType })
  response.flushHeaders()
  return response
}

/** The list as it is, under another version. */
function sendList({ response, request, form, store }: FaultyExchange, resourceVersion: string): void {
  const { items, metadata } = selectPage(request, store.collection(keptAs(request.resource)), store.revision)
  const view = { resource: request.resource, form, include: 'Metadata', now: () => 0 } as const
  response.writeHead(200, { 'Content-Type': encodingOf(form).contentType })
  for (const piece of encodeItems(items, { ...metadata, resourceVersion }, view)) response.write(piece)
  response.end()
}

/** Lets the server answer, and takes the body of it: `send` decides what becomes of it. */
function captureBody({ response, next }: FaultyExchange, send: (body: Buffer) => void): void {
  const pieces: Buffer[] = []
  const take = (piece: unknown): void => {
    if (typeof piece === 'string' || piece instanceof Uint8Array) pieces.push(Buffer.from(piece as Uint8Array))
  }
  response.write = (piece: unknown) => {
    take(piece)
    return true
  }
  response.end = ((piece?: unknown) => {
    take(piece)
    // The methods of its class are back.
    Reflect.deleteProperty(response, 'write')
    Reflect.deleteProperty(response, 'end')
    send(Buffer.concat(pieces))
    return response
  }) as ServerResponse['end']
  next()
}

async function sendSlowly(
  response: ServerResponse,
  bytes: Buffer,
  { pieceBytes, pauseMs }: { readonly pieceBytes: number; readonly pauseMs: number },
): Promise<void> {
  for (let at = 0; at < bytes.length && !response.destroyed; at += pieceBytes) {
    response.write(bytes.subarray(at, at + pieceBytes))
    await sleep(pauseMs)
  }
  response.end()
}
