// A client of one API server. It hides connections and credentials from the rest of the folder.

import type { IncomingMessage } from 'node:http'

export interface ApiRequest {
  readonly method?: 'GET' | 'POST'
  /** From the root of the API: `/api/v1/services?limit=500`. */
  readonly path: string
  /** Media types for the Accept header; the client's configured ones when absent. */
  readonly accept?: string
  /** Sent as JSON. */
  readonly body?: unknown
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
