// One watch that a client has open.

import type { Buffer } from 'node:buffer'
import type { ServerResponse } from 'node:http'
import type { Encoding, StatusBody } from './encodings.ts'
import type { ObjectStore, StoreChange } from './object-store.ts'
import type { ApiObject, ServedResource } from './objects.ts'
import type { Selector } from './selectors.ts'

export interface WatcherOptions {
  readonly response: ServerResponse
  readonly store: ObjectStore
  readonly resource: ServedResource
  readonly encoding: Encoding
  readonly selector: Selector
  readonly fromVersion: number
  readonly timeoutMs: number | undefined
  /** Undefined: the client asked for none. */
  readonly bookmarkMs: number | undefined
}

export class Watcher {
  readonly #options: WatcherOptions
  readonly #ends: (() => void)[] = []
  /** As a peer behind a dead network: the connection stands, nothing comes. */
  #silent = false

  constructor(options: WatcherOptions) {
    this.#options = options
    const { response, store, resource, fromVersion, timeoutMs, bookmarkMs } = options
    const missed = store.changesSince(resource, fromVersion) ?? []
    for (const change of missed) this.#send(change)
    const sendIfNew = (change: StoreChange): void => {
      // A client that watches from the future hears nothing, as with the real one.
      if (change.version > fromVersion) this.#send(change)
    }
    this.#ends.push(store.subscribe(resource, sendIfNew))
    if (bookmarkMs !== undefined) this.#repeat(() => this.bookmark(), bookmarkMs)
    if (timeoutMs !== undefined) this.#repeat(() => this.end(), timeoutMs)
    response.once('close', () => this.#unsubscribe())
  }

  get resource(): ServedResource {
    return this.#options.resource
  }

  bookmark(): void {
    const { resource, store, encoding } = this.#options
    const metadata = { name: '', resourceVersion: String(store.version) }
    const object: ApiObject = { kind: resource.kind, apiVersion: resource.apiVersion, metadata }
    this.sendBytes(encoding.frame('BOOKMARK', object))
  }

  /** Sends everything again that ever happened. */
  repeat(): void {
    const { store, resource } = this.#options
    for (const change of store.changesSince(resource, 0) ?? []) this.#send(change)
  }

  error(status: StatusBody): void {
    this.sendBytes(this.#options.encoding.errorFrame(status))
    this.end()
  }

  /** A frame of an object, cut short, and then the end of the connection. */
  truncated(object: ApiObject): void {
    const frame = this.#options.encoding.frame('MODIFIED', object)
    this.#options.response.write(frame.subarray(0, frame.length >> 1), () => this.drop())
  }

  sendBytes(bytes: Buffer): void {
    if (!this.#silent) this.#options.response.write(bytes)
  }

  silence(): void {
    this.#silent = true
  }

  end(): void {
    this.#unsubscribe()
    if (!this.#silent) this.#options.response.end()
  }

  drop(): void {
    this.#unsubscribe()
    this.#options.response.socket?.resetAndDestroy()
  }

  #send(change: StoreChange): void {
    const { encoding, selector } = this.#options
    const before = change.before !== undefined && selector(change.before)
    const after = change.after !== undefined && selector(change.after)
    if (after && change.after !== undefined) {
      this.sendBytes(encoding.frame(before ? 'MODIFIED' : 'ADDED', change.after))
    } else if (before && change.before !== undefined) {
      // An object that no longer matches the selector is deleted as far as this client can see.
      const metadata = { ...change.before.metadata, resourceVersion: String(change.version) }
      this.sendBytes(encoding.frame('DELETED', { ...change.before, metadata }))
    }
  }

  #repeat(action: () => void, everyMs: number): void {
    const timer = setInterval(action, everyMs)
    this.#ends.push(() => clearInterval(timer))
  }

  #unsubscribe(): void {
    for (const end of this.#ends.splice(0)) end()
  }
}
