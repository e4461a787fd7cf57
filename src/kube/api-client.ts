// A client of one API server. It hides connections and credentials from the rest of the folder.

import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'

export interface ApiRequest {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** From the root of the API: `/api/v1/services?limit=500`. */
  readonly path: string
  /** Media types for the Accept header; the client's configured ones when absent. */
  readonly accept?: string
  /** Sent as JSON. */
  readonly body?: unknown
  /** The media type of the body: what kind of patch it is. JSON when absent. */
  readonly contentType?: string
  /** Further headers. */
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

export interface ApiClient {
  /** The API server's URL, for messages. */
  readonly server: string
  /** Resolves when the headers of a 2xx answer are there; any other status, and any failure, rejects. */
  request(request: ApiRequest): Promise<IncomingMessage>
  /** Closes connections that are kept alive. */
  close(): void
}

/** A connection that the API server has turned into something else. */
export interface Upgraded {
  readonly response: IncomingMessage
  readonly socket: Duplex
  /** What came behind the answer already. */
  readonly head: Buffer
}

export interface UpgradingClient extends ApiClient {
  /** Resolves when the API server has agreed (101); any other answer, and any failure, rejects. */
  upgrade(request: ApiRequest): Promise<Upgraded>
}
