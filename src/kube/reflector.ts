// Reports the objects of one kind to a handler, whatever happens to the API server and the network: it lists, watches from
// where the list ended, watches again when a watch ends, lists again when the server no longer has our version, and delivers
// only differences.

import type { Buffer } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { messageOf } from '../lib/errors.ts'
import type { Logger } from '../lib/log.ts'
import type { ApiClient } from './api-client.ts'
import { ApiError, isExpired, isVersionInvalid, isVersionTooLarge } from './api-error.ts'
import { Backoff } from './backoff.ts'
import { EventBatch, HandlerError } from './event-batch.ts'
import { isOlderVersion, KnownVersions } from './known-versions.ts'
import { IdleTimeoutError, readBody } from './read-body.ts'
import { DEFAULT_TIMING, type ReflectorTiming } from './reflector-timing.ts'
import type { ResourceHandler } from './resource-handler.ts'
import type { Decoded, Resource } from './resource.ts'
import { sleep } from './sleep.ts'
import { listParserFor, watchParserFor } from './encoding/codec.ts'
import type { ListMeta } from './encoding/list-parser.ts'
import { StringPool } from './encoding/string-pool.ts'
import type { WatchFrame } from './encoding/watch-parser.ts'
import { WatchLostError } from './watch-lost-error.ts'

export interface ReflectorOptions<T> {
  readonly client: ApiClient
  readonly resource: Resource<T>
  readonly labelSelector?: string
  readonly fieldSelector?: string
  readonly handler: ResourceHandler<T>
  readonly log: Logger
  readonly signal: AbortSignal
  /** Before the first complete list, such errors end the reflector instead of a retry. It deletes what it has delivered. */
  readonly giveUpOn?: (error: unknown) => boolean
  readonly timing?: Partial<ReflectorTiming>
  /** In how many milliseconds delivered events will be written; undefined: none are waiting. More are read shortly before. */
  readonly nextWriteMs?: (() => number | undefined) | undefined
  /** Called when a watch begins that is not the first. */
  readonly onWatchRestarted?: ((resource: string) => void) | undefined
}

/** Resolves when the signal is aborted. Rejects with an error of the handler, or of `giveUpOn`. */
export async function runReflector<T>(options: ReflectorOptions<T>): Promise<void> {
  try {
    await new Reflector(options).run()
  } catch (error) {
    if (error instanceof HandlerError) throw error.cause
    throw error
  }
}

class Reflector<T> {
  readonly #options: ReflectorOptions<T>
  readonly #timing: ReflectorTiming
  /** Between failed requests. */
  readonly #backoff: Backoff
  /** After watches that begin well and do not last, and lists that follow them. */
  readonly #lossBackoff: Backoff
  readonly #log: Logger
  readonly #pool = new StringPool()
  readonly #known = new KnownVersions()
  readonly #batch: EventBatch<T>
  /** The version up to which everything has been delivered; undefined: a list is needed. */
  #version: string | undefined
  /** The minimal version of the next list: "0" is any, "" the newest. */
  #listVersion = '0'
  /** Whether the API server may have lost history: a watch from a version that it never had would be silent for ever. */
  #history: 'trusted' | 'doubted' = 'trusted'
  #paging: 'allowed' | 'too slow' = 'allowed'
  #availability: 'unknown' | 'available' | 'unavailable' = 'unknown'
  #synced = false
  /** How many watches there have been. */
  #watches = 0

  constructor(options: ReflectorOptions<T>) {
    this.#options = options
    this.#batch = new EventBatch(options.handler)
    this.#timing = { ...DEFAULT_TIMING, ...options.timing }
    const { backoffMs, maxBackoffMs, random } = this.#timing
    this.#backoff = new Backoff({ initialMs: backoffMs, maxMs: maxBackoffMs, random })
    this.#lossBackoff = new Backoff({ initialMs: backoffMs, maxMs: maxBackoffMs, random })
    this.#log = options.log.withValues({ resource: options.resource.name })
  }

  async run(): Promise<void> {
    const { signal } = this.#options
    while (!signal.aborted) {
      try {
        if (this.#version === undefined) await this.#list()
        else if (this.#history === 'doubted') await this.#checkHistory(this.#version)
        else await this.#watch(this.#version)
      } catch (error) {
        if (signal.aborted) return
        await this.#recover(error)
      }
    }
  }

  // --- list ---

  async #list(): Promise<void> {
    const startMs = this.#timing.clock.monotonicNow()
    this.#known.startList()
    let page: ListMeta = await this.#listPage({ resourceVersion: this.#listVersion })
    while (page.continueToken !== '') page = await this.#listPage({ continue: page.continueToken })
    for (const key of this.#known.finishList()) this.#batch.add({ type: 'delete', key })
    this.#batch.flush()
    this.#version = page.resourceVersion
    this.#listVersion = page.resourceVersion
    this.#history = 'trusted'
    this.#paging = 'allowed'
    this.#backoff.reset()
    this.#becomeAvailable()
    const tookMs = Math.round(this.#timing.clock.monotonicNow() - startMs)
    this.#log.v(2)?.info('Listed', { resourceVersion: page.resourceVersion, tookMs })
    if (this.#synced) return
    this.#synced = true
    this.#batch.notify((handler) => handler.onSynced?.())
  }

  /** One answer to a list request, delivered while it arrives. */
  async #listPage(query: Record<string, string>): Promise<ListMeta> {
    // Only a list of the newest version has pages: the server takes others from memory, and ignores the limit.
    const paged = (query['resourceVersion'] === '' && this.#paging === 'allowed') || query['continue'] !== undefined
    const response = await this.#request({ ...query, limit: paged ? String(this.#timing.pageSize) : '' })
    const parser = listParserFor(contentTypeOf(response), this.#options.resource, this.#pool)
    const { clock, listIdleMs } = this.#timing
    const objects: Decoded<T>[] = []
    const onChunk = (chunk: Buffer): void => {
      parser.push(chunk, objects)
      for (const { key, resourceVersion, object } of objects) {
        if (this.#known.list(key, resourceVersion)) this.#batch.add({ type: 'set', key, object })
      }
      objects.length = 0
      this.#batch.flushSoon((error) => response.destroy(error))
    }
    try {
      await readBody(response, { clock, idleTimeoutMs: listIdleMs, onChunk })
    } finally {
      this.#finishBatch()
    }
    return parser.finish()
  }

  /** Lists one object: the answer has the server's newest version. */
  async #checkHistory(version: string): Promise<void> {
    const response = await this.#request({ limit: '1' })
    const parser = listParserFor(contentTypeOf(response), this.#options.resource, this.#pool)
    const { clock, listIdleMs } = this.#timing
    const onChunk = (chunk: Buffer): void => parser.push(chunk, [])
    await readBody(response, { clock, idleTimeoutMs: listIdleMs, onChunk })
    const { resourceVersion } = parser.finish()
    this.#history = 'trusted'
    if (isOlderVersion(resourceVersion, version)) throw this.#historyLost(resourceVersion)
  }

  // --- watch ---

  async #watch(resourceVersion: string): Promise<void> {
    const { clock, random, watchIdleMs, watchSeconds, shortWatchMs } = this.#timing
    const response = await this.#request({
      watch: 'true',
      allowWatchBookmarks: 'true',
      resourceVersion,
      timeoutSeconds: String(Math.round(watchSeconds * (1 + random()))),
    })
    this.#backoff.reset()
    this.#becomeAvailable()
    if (this.#watches++ > 0) this.#options.onWatchRestarted?.(this.#options.resource.name)
    const parser = watchParserFor(contentTypeOf(response), this.#options.resource, this.#pool)
    const startMs = clock.monotonicNow()
    let frameCount = 0
    const frames: WatchFrame<T>[] = []
    const onChunk = (chunk: Buffer): void => {
      parser.push(chunk, frames)
      frameCount += frames.length
      const lost = this.#accept(frames.splice(0))
      if (lost !== undefined) throw lost
      this.#batch.flushSoon((error) => response.destroy(error))
    }
    let broken: unknown
    try {
      await readBody(response, { clock, idleTimeoutMs: watchIdleMs, onChunk, nextWriteMs: this.#options.nextWriteMs })
    } catch (error) {
      if (error instanceof HandlerError || error instanceof WatchLostError || this.#options.signal.aborted) throw error
      broken = error
      if (error instanceof IdleTimeoutError) this.#history = 'doubted'
    } finally {
      this.#finishBatch()
    }
    const lastedMs = clock.monotonicNow() - startMs
    const ending = { lastedMs: Math.round(lastedMs), frameCount, unreadBytes: parser.pendingBytes }
    if (frameCount === 0 && lastedMs < shortWatchMs) {
      const why = broken === undefined ? '' : ` (${messageOf(broken)})`
      throw new WatchLostError(new Error(`Cannot keep watching: ended at once${why}`), 'watch again')
    }
    this.#lossBackoff.reset()
    this.#log.v(2)?.info('Watch ended', broken === undefined ? ending : { ...ending, err: messageOf(broken) })
    // The connections of all nodes may have broken at the same moment.
    if (broken !== undefined) await this.#sleep(random() * this.#timing.backoffMs)
  }

  /** Takes frames up to the first that ends the watch. */
  #accept(frames: readonly WatchFrame<T>[]): WatchLostError | undefined {
    for (const frame of frames) {
      const lost = this.#acceptFrame(frame)
      if (lost !== undefined) return lost
    }
    return undefined
  }

  #acceptFrame(frame: WatchFrame<T>): WatchLostError | undefined {
    switch (frame.type) {
      case 'set':
        if (this.#known.set(frame.key, frame.resourceVersion)) {
          this.#batch.add({ type: 'set', key: frame.key, object: frame.object })
        }
        return this.#advance(frame.resourceVersion)
      case 'delete':
        if (this.#known.delete(frame.key)) this.#batch.add({ type: 'delete', key: frame.key })
        // Old API servers send the version of the object, not of its deletion: it may be older.
        if (!isOlderVersion(frame.resourceVersion, this.#version ?? '')) this.#advance(frame.resourceVersion)
        return undefined
      case 'bookmark':
        return this.#advance(frame.resourceVersion)
      case 'error':
        return new WatchLostError(new ApiError(`watch ${this.#options.resource.name}`, frame.status))
      case 'malformed':
        return new WatchLostError(frame.error)
    }
  }

  /** An older version means that the server lost history, as after a restore from a backup. */
  #advance(resourceVersion: string): WatchLostError | undefined {
    if (resourceVersion === '') return undefined
    if (isOlderVersion(resourceVersion, this.#version ?? '')) return this.#historyLost(resourceVersion)
    this.#version = resourceVersion
    this.#listVersion = resourceVersion
    return undefined
  }

  #historyLost(resourceVersion: string): WatchLostError {
    const went = `${this.#version} to ${resourceVersion}`
    this.#listVersion = ''
    this.#known.doubt()
    return new WatchLostError(new Error(`Cannot keep watching: resource version went back from ${went}`))
  }

  // --- failures ---

  async #recover(error: unknown): Promise<void> {
    if (error instanceof HandlerError) throw error
    if (!this.#synced && this.#options.giveUpOn?.(error) === true) {
      this.#takeBack()
      throw error
    }
    const wasListing = this.#version === undefined
    const cause = error instanceof WatchLostError ? error.cause : error
    const isInvalid = !wasListing && isVersionInvalid(cause)
    if (isExpired(cause) || isVersionTooLarge(cause) || isInvalid) {
      // A list of at least our version is enough, unless the server cannot give that one.
      if (wasListing || isVersionTooLarge(cause) || isInvalid) this.#listVersion = ''
      if (isVersionTooLarge(cause)) this.#known.doubt()
      // The server dropped the version before we had read all pages.
      if (wasListing && isExpired(cause)) this.#paging = 'too slow'
      this.#version = undefined
      this.#log.info('Listing again, the API server no longer has our version', { err: messageOf(cause) })
      await this.#sleep(this.#lossBackoff.next())
      return
    }
    const lost = error instanceof WatchLostError
    if (lost && error.remedy === 'list again') this.#version = undefined
    // Another server may come back.
    if (!lost && !(cause instanceof ApiError)) this.#history = 'doubted'
    this.#becomeUnavailable(cause)
    const retryAfterMs = cause instanceof ApiError ? cause.retryAfterMs : undefined
    const delayMs = (lost ? this.#lossBackoff : this.#backoff).next(retryAfterMs)
    const action = wasListing ? 'Failed to list' : 'Failed to watch'
    this.#log.error(cause, action, { server: this.#options.client.server, retryInMs: Math.round(delayMs) })
    await this.#sleep(delayMs)
  }

  /** Deletes what an incomplete list delivered: another source may not have it. */
  #takeBack(): void {
    for (const key of this.#known.forgetAll()) this.#batch.add({ type: 'delete', key })
    this.#batch.flush()
  }

  async #sleep(delayMs: number): Promise<void> {
    await sleep(this.#timing.clock, delayMs, this.#options.signal).catch(() => {})
  }

  #becomeAvailable(): void {
    if (this.#availability === 'available') return
    this.#availability = 'available'
    this.#batch.notify((handler) => handler.onAvailable?.())
  }

  #becomeUnavailable(error: unknown): void {
    if (this.#availability === 'unavailable') return
    this.#availability = 'unavailable'
    const cause = error instanceof Error ? error : new Error(String(error))
    this.#batch.notify((handler) => handler.onUnavailable?.(cause))
  }

  #finishBatch(): void {
    if (this.#options.signal.aborted) this.#batch.discard()
    else this.#batch.flush()
  }

  #request(query: Record<string, string>): Promise<IncomingMessage> {
    const { client, signal } = this.#options
    return client.request({ path: pathOf(this.#options, query), signal })
  }
}

type Selection = Pick<ReflectorOptions<never>, 'labelSelector' | 'fieldSelector'> & {
  readonly resource: { readonly path: string }
}

/** The first request of a reflector. */
export function firstPathOf(selection: Selection): string {
  return pathOf(selection, { resourceVersion: '0' })
}

function pathOf(selection: Selection, query: Readonly<Record<string, string>>): string {
  const { resource, labelSelector = '', fieldSelector = '' } = selection
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries({ labelSelector, fieldSelector, ...query })) {
    if (value !== '') parameters.set(name, value)
  }
  return `${resource.path}?${parameters.toString()}`
}

function contentTypeOf(response: IncomingMessage): string {
  return response.headers['content-type'] ?? ''
}
