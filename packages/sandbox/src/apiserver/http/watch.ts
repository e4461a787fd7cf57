// A watch: the changes of a resource that a client wants to see, as they happen.

import { Stored } from '../store/stored.ts'
import { apiVersionOf } from '../resources/resource.ts'
import { contentTypes, encodeEvent, encodeNotice } from './encode.ts'
import { expired, statusOf } from '../api-error.ts'
import { parsePredicate, parseRevision, parseSeconds, wantsInitialEvents } from './list-options.ts'
import { Buffer } from 'node:buffer'
import type { ApiError } from '../api-error.ts'
import type { ApiRequest } from './api-request.ts'
import type { Change, Collection } from '../store/collection.ts'
import { every, type Clock } from '../../../../../src/lib/clock.ts'
import type { EventType, View } from './encode.ts'
import type { JsonObject } from '../json.ts'
import type { Predicate } from './list-options.ts'
import type { ServerResponse } from 'node:http'
import type { Store } from '../store/store.ts'

/** What a client may leave unread before it is cut off. It comes back and starts over. */
const unreadLimit = 128 * 1024 * 1024
const shortestWatchSeconds = 1800

export interface WatchSettings {
  readonly store: Store
  readonly clock: Clock
  readonly bookmarkIntervalMs: number
}

export function serveWatch(request: ApiRequest, response: ServerResponse, view: View, settings: WatchSettings): void {
  const predicate = parsePredicate(request)
  const initial = wantsInitialEvents(request.query)
  const revision = parseRevision(request.query, 'watch')
  const bookmarks = ['true', '1'].includes(request.query.get('allowWatchBookmarks') ?? '')
  const timeout = parseSeconds(request.query, 'timeoutSeconds') ?? shortestWatchSeconds * (1 + Math.random())
  const kept = request.resource.storedAs?.resource ?? request.resource
  const watch = new Watch(response, { ...view, predicate, collection: settings.store.collection(kept) })
  watch.open(contentTypes[view.form.encoding])
  if (initial || revision === undefined) {
    watch.sendState()
    if (initial && bookmarks) watch.sendBookmark(settings.store.revision, { 'k8s.io/initial-events-end': 'true' })
  } else if (!watch.sendSince(revision)) {
    return
  }
  watch.follow(revision ?? 0)
  const timers = [settings.clock.setTimeout(() => watch.end(), timeout * 1000)]
  if (bookmarks) {
    timers.push(every(settings.clock, settings.bookmarkIntervalMs, () => watch.sendBookmark(settings.store.revision)))
  }
  response.on('close', () => {
    watch.stop()
    for (const timer of timers) timer.cancel()
  })
}

interface WatchOptions extends View {
  readonly predicate: Predicate | undefined
  readonly collection: Collection
}

class Watch {
  readonly #response: ServerResponse
  readonly #options: WatchOptions
  #pending: Buffer[] = []
  #withColumns = true
  #unlisten: (() => void) | undefined

  constructor(response: ServerResponse, options: WatchOptions) {
    this.#response = response
    this.#options = options
  }

  open(contentType: string): void {
    const isProtobuf = this.#options.form.encoding === 'protobuf'
    this.#response.writeHead(200, {
      'content-type': isProtobuf ? `${contentType};stream=watch` : 'application/json',
      'cache-control': 'no-cache, private',
    })
    this.#response.flushHeaders()
  }

  /** Everything there is, as if it had just been added. */
  sendState(): void {
    const { collection, predicate } = this.#options
    for (const stored of collection.list()) {
      if (predicate === undefined || predicate(stored.object)) this.#send('ADDED', stored)
    }
  }

  /** What happened since a revision. False, and the end of the watch, when that is no longer known. */
  sendSince(revision: number): boolean {
    const { collection } = this.#options
    const changes = collection.changesSince(revision)
    if (changes === undefined) {
      this.#fail(expired(`too old resource version: ${revision} (${collection.oldestRevision})`))
      return false
    }
    for (const change of changes) this.#sendChange(change)
    return true
  }

  /** From now on, whatever is newer than the revision that the client has seen. */
  follow(revision: number): void {
    this.#unlisten = this.#options.collection.listen((change) => {
      if (change.revision > revision) this.#sendChange(change)
    })
  }

  sendBookmark(revision: number, annotations?: JsonObject): void {
    const { resource } = this.#options
    const metadata: JsonObject = { resourceVersion: String(revision) }
    if (annotations !== undefined) metadata['annotations'] = annotations
    const type = { kind: resource.kind, apiVersion: apiVersionOf(resource) }
    this.#write(encodeNotice('BOOKMARK', { ...type, metadata }, this.#options))
  }

  end(): void {
    this.stop()
    this.#flush()
    this.#response.end()
  }

  stop(): void {
    this.#unlisten?.()
  }

  #fail(error: ApiError): void {
    this.#write(encodeNotice('ERROR', statusOf(error) as JsonObject, this.#options))
    this.end()
  }

  /** A change that moves an object into or out of what the client selected is an addition or a deletion to it. */
  #sendChange({ before, after, last, revision }: Change): void {
    const { predicate } = this.#options
    const matches = (stored: Stored | undefined): boolean =>
      stored !== undefined && (predicate === undefined || predicate(stored.object))
    const [did, does] = [matches(before), matches(after)]
    if (does && after !== undefined) this.#send(did ? 'MODIFIED' : 'ADDED', after)
    else if (did && before !== undefined)
      this.#send('DELETED', after === undefined ? last : atRevision(before, revision))
  }

  #send(type: EventType, stored: Stored): void {
    this.#write(encodeEvent(type, stored, this.#options, this.#withColumns))
    this.#withColumns = false
  }

  /** What is sent in one turn of the event loop leaves together: encrypting and sending is most of the cost. */
  #write(bytes: Buffer): void {
    if (this.#pending.length === 0) setImmediate(() => this.#flush())
    this.#pending.push(bytes)
  }

  #flush(): void {
    if (this.#pending.length === 0 || this.#response.writableEnded) return
    this.#response.write(this.#pending.length === 1 ? this.#pending[0] : Buffer.concat(this.#pending))
    this.#pending = []
    if (this.#response.writableLength > unreadLimit) this.#response.destroy()
  }
}

function atRevision(stored: Stored, revision: number): Stored {
  const metadata = { ...stored.object.metadata, resourceVersion: String(revision) }
  return new Stored(stored.key, { ...stored.object, metadata }, revision)
}
