// Requests that are sent before there is anything to do with their answers: while the program loads and opens the rest of itself,
// the API server works already.

import type { IncomingMessage } from 'node:http'
import type { ApiClient, ApiRequest } from './api-client.ts'

/** The same client. A request that was sent early gets the answer to that, once; the body waits until it is read. */
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
      // A failure is for the request that gets it.
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
