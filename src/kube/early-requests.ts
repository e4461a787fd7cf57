// Requests that are sent at the start, before their answers can be processed: the API server works while the program still loads.

import type { IncomingMessage } from 'node:http'
import type { ApiClient, ApiRequest } from './api-client.ts'

/** The same client. The first request for a path that was sent early gets that answer. */
export class EarlyRequests implements ApiClient {
  readonly #client: ApiClient
  readonly #answers = new Map<string, Promise<IncomingMessage>>()

  constructor(client: ApiClient) {
    this.#client = client
  }

  get server(): string {
    return this.#client.server
  }

  send(paths: readonly string[]): void {
    for (const path of paths) {
      const answer = this.#client.request({ path })
      // The request that takes the answer reports its failure.
      answer.catch(() => {})
      this.#answers.set(path, answer)
    }
  }

  async request(request: ApiRequest): Promise<IncomingMessage> {
    const early = this.#answers.get(request.path)
    if (early === undefined) return this.#client.request(request)
    this.#answers.delete(request.path)
    const response = await early
    const { signal } = request
    const end = () => response.destroy(new Error('aborted'))
    if (signal?.aborted === true) end()
    signal?.addEventListener('abort', end, { once: true })
    response.once('close', () => signal?.removeEventListener('abort', end))
    return response
  }

  close(): void {
    this.#client.close()
  }
}
