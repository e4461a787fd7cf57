// The watches that clients of the server have open, to be disturbed from outside.

import type { Form } from '../../../packages/sandbox/src/apiserver/http/negotiate.ts'
import { parsePredicate } from '../../../packages/sandbox/src/apiserver/http/list-options.ts'
import { apiVersionOf } from '../../../packages/sandbox/src/apiserver/resources/resource.ts'
import { encodingOf, type Encoding, type StatusBody } from './encodings.ts'
import type { ApiObject, ServedResource } from './objects.ts'
import type { ApiRequest } from '../../../packages/sandbox/src/apiserver/http/api-request.ts'
import type { Buffer } from 'node:buffer'
import type { ServerResponse } from 'node:http'
import type { Store } from '../../../packages/sandbox/src/apiserver/store/store.ts'
import type { Stored } from '../../../packages/sandbox/src/apiserver/store/stored.ts'

export interface WatchOptions {
  readonly request: ApiRequest
  readonly response: ServerResponse
  readonly form: Form
  readonly store: Store
  /** Breaks the connection. */
  readonly reset: () => void
}

export class OpenWatch {
  readonly #options: WatchOptions
  readonly #encoding: Encoding

  constructor(options: WatchOptions) {
    this.#options = options
    this.#encoding = encodingOf(options.form)
  }

  get resource(): ServedResource {
    return this.#options.request.resource
  }

  bookmark(): void {
    const metadata = { name: '', resourceVersion: String(this.#options.store.revision) }
    const { kind } = this.resource
    this.sendBytes(this.#encoding.frame('BOOKMARK', { kind, apiVersion: apiVersionOf(this.resource), metadata }))
  }

  /** Sends everything again that ever happened. */
  repeat(): void {
    const { store, request } = this.#options
    const predicate = parsePredicate(request) ?? (() => true)
    const fits = (stored: Stored | undefined) => stored !== undefined && predicate(stored.object)
    const collection = store.collection(this.resource)
    for (const { before, after, last } of collection.changesSince(collection.oldestRevision) ?? []) {
      const type = fits(after) ? (fits(before) ? 'MODIFIED' : 'ADDED') : 'DELETED'
      if (fits(before) || fits(after)) this.sendBytes(this.#encoding.frame(type, last.object as unknown as ApiObject))
    }
  }

  error(status: StatusBody): void {
    this.sendBytes(this.#encoding.errorFrame(status))
    this.end()
  }

  /** A frame of an object, cut short, and then the end of the connection. */
  truncated(object: ApiObject): void {
    const frame = this.#encoding.frame('MODIFIED', object)
    this.#later(({ response, reset }) => response.write(frame.subarray(0, frame.length >> 1), reset))
  }

  sendBytes(bytes: Buffer): void {
    this.#later(({ response }) => response.write(bytes))
  }

  /** From now on it is as a peer behind a dead network: the connection stands, nothing comes. */
  silence(): void {
    const { response } = this.#options
    response.write = () => true
    response.end = () => response
  }

  end(): void {
    this.#later(({ response }) => response.end())
  }

  /** The server sends the events of a turn at its end; what comes after them must not overtake them. */
  #later(work: (options: WatchOptions) => void): void {
    setImmediate(() => {
      if (!this.#options.response.writableEnded) work(this.#options)
    })
  }
}
