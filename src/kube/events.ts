// Events on our Node, or on a Service: best effort, in the background.

import { Buffer } from 'node:buffer'
import { hostname } from 'node:os'
import { systemClock, type Clock } from '../lib/clock.ts'
import { messageOf } from '../lib/errors.ts'
import type { Logger } from '../lib/log.ts'
import type { ApiClient } from './api-client.ts'
import { ApiError, isNotServed } from './api-error.ts'
import { EventQuota } from './event-quota.ts'
import { sleep } from './sleep.ts'
import { JSON_TYPE } from './encoding/codec.ts'

export interface RecordedEvent {
  readonly type: 'Normal' | 'Warning'
  /** Why: `Starting`, `FailedToStartMetricServer`. */
  readonly reason: string
  /** What was being done: `StartKubeProxy`. */
  readonly action: string
  readonly note?: string
  /** The Service that it is about; absent: our Node. */
  readonly service?: { readonly namespace: string; readonly name: string; readonly uid?: string }
}

export interface EventRecorderOptions {
  readonly client: ApiClient
  readonly nodeName: string
  readonly log: Logger
  readonly signal: AbortSignal
  readonly clock?: Clock
  readonly onOutcome?: (outcome: EventOutcome) => void
}

/** Failed: to be retried. Dropped: given up, or there were too many. */
export type EventOutcome = 'sent' | 'failed' | 'dropped'

/** With this many waiting events, further ones are dropped. */
const MAX_WAITING = 32

/** The same event is not sent again within this time. */
const REPEAT_MS = 10 * 60_000

const ATTEMPTS = 12
const RETRY_MS = 10_000

/** The API accepts notes of at most 1,024 bytes. */
const MAX_NOTE = 1024

const REPORTER = 'kube-proxy'

export class EventRecorder {
  readonly #options: EventRecorderOptions
  readonly #clock: Clock
  readonly #waiting: PendingEvent[] = []
  /** When they were recorded, by the monotonic clock. Oldest first. */
  readonly #recent = new Map<string, number>()
  readonly #quota = new EventQuota()
  #sending = false
  #warnedMs = -Infinity
  #api: 'events.k8s.io/v1' | 'v1' = 'events.k8s.io/v1'
  #lastName = 0n

  constructor(options: EventRecorderOptions) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
  }

  /** Returns at once. Drops repetitions and floods. */
  record(event: RecordedEvent): void {
    const nowMs = this.#clock.monotonicNow()
    const identity = JSON.stringify(event)
    this.#forgetBefore(nowMs - REPEAT_MS)
    if (this.#recent.has(identity)) return
    if (event.service !== undefined && !this.#quota.take(`${event.service.namespace}/${event.service.name}`, nowMs)) {
      this.#options.onOutcome?.('dropped')
      return
    }
    if (this.#waiting.length >= MAX_WAITING) {
      this.#options.onOutcome?.('dropped')
      this.#options.log.v(2)?.info('Too many events, dropping one', { reason: event.reason })
      return
    }
    this.#recent.set(identity, nowMs)
    this.#waiting.push({ event, atMs: this.#clock.now(), attempts: 0 })
    if (!this.#sending) void this.#sendAll()
  }

  #forgetBefore(ms: number): void {
    for (const [identity, sentMs] of this.#recent) {
      if (sentMs > ms) break
      this.#recent.delete(identity)
    }
  }

  /** In turns: a refused event does not keep the others waiting, unless the server itself fails. */
  async #sendAll(): Promise<void> {
    const { signal } = this.#options
    this.#sending = true
    const refused = new Set<PendingEvent>()
    const pause = async () => {
      refused.clear()
      await sleep(this.#clock, RETRY_MS, signal).catch(() => {})
    }
    for (let next = this.#waiting.shift(); next !== undefined && !signal.aborted; next = this.#waiting.shift()) {
      if (refused.has(next)) await pause()
      const error = await this.#send(next)
      if (error === undefined) continue
      this.#waiting.push(next)
      refused.add(next)
      if (isAboutServer(error)) await pause()
    }
    this.#sending = false
  }

  /** The error, if the event is to be retried. */
  async #send(pending: PendingEvent): Promise<unknown> {
    const { signal, onOutcome } = this.#options
    try {
      await this.#post(pending)
      onOutcome?.('sent')
      return undefined
    } catch (error) {
      if (signal.aborted) return undefined
      if (isNotServed(error) && this.#api !== 'v1') {
        this.#api = 'v1'
        return this.#send(pending)
      }
      onOutcome?.('failed')
      this.#warn(pending, error)
      if (!isHopeless(error) && ++pending.attempts < ATTEMPTS) return error
      onOutcome?.('dropped')
      // When it happens again, it may be sent.
      if (!isHopeless(error)) this.#recent.delete(JSON.stringify(pending.event))
      return undefined
    }
  }

  #warn({ event }: PendingEvent, error: unknown): void {
    const nowMs = this.#clock.monotonicNow()
    if (nowMs < this.#warnedMs + REPEAT_MS) return
    this.#warnedMs = nowMs
    this.#options.log.warn('Cannot record an Event for now', { reason: event.reason, err: messageOf(error) })
  }

  async #post(pending: PendingEvent): Promise<void> {
    const { client, signal } = this.#options
    const root = this.#api === 'v1' ? '/api/v1' : '/apis/events.k8s.io/v1'
    const path = `${root}/namespaces/${namespaceOf(pending.event)}/events`
    const body = this.#api === 'v1' ? this.#coreBody(pending) : this.#body(pending)
    const response = await client.request({ method: 'POST', path, accept: JSON_TYPE, body, signal })
    response.resume()
  }

  /** events.k8s.io/v1 */
  #body(pending: PendingEvent): Record<string, unknown> {
    return {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      ...this.#common(pending),
      regarding: this.#subject(pending.event),
      note: shorten(pending.event.note ?? ''),
    }
  }

  /** core/v1, for servers before 1.19. */
  #coreBody(pending: PendingEvent): Record<string, unknown> {
    const seconds = `${new Date(pending.atMs).toISOString().slice(0, 19)}Z`
    return {
      apiVersion: 'v1',
      kind: 'Event',
      ...this.#common(pending),
      reportingComponent: REPORTER,
      involvedObject: this.#subject(pending.event),
      message: shorten(pending.event.note ?? ''),
      source: { component: REPORTER, host: this.#options.nodeName },
      firstTimestamp: seconds,
      lastTimestamp: seconds,
      count: 1,
    }
  }

  #common({ event, atMs }: PendingEvent): Record<string, unknown> {
    return {
      metadata: { name: this.#nextName(event, atMs), namespace: namespaceOf(event) },
      eventTime: new Date(atMs).toISOString().replace('Z', '000Z'),
      reportingController: REPORTER,
      reportingInstance: `${REPORTER}-${hostname()}`.slice(0, 128),
      type: event.type,
      reason: event.reason,
      action: event.action,
    }
  }

  /** Unique: by the nanosecond, as other components name events. */
  #nextName(event: RecordedEvent, atMs: number): string {
    const nanoseconds = BigInt(Math.trunc(atMs)) * 1_000_000n
    this.#lastName = nanoseconds > this.#lastName ? nanoseconds : this.#lastName + 1n
    return `${event.service?.name ?? this.#options.nodeName}.${this.#lastName.toString(16)}`
  }

  #subject(event: RecordedEvent): Record<string, unknown> {
    if (event.service !== undefined) return { apiVersion: 'v1', kind: 'Service', ...event.service }
    // As in kubelet and kube-proxy the uid is the Node's name: `kubectl describe node` looks for it.
    const { nodeName } = this.#options
    return { apiVersion: 'v1', kind: 'Node', name: nodeName, uid: nodeName }
  }
}

/** Events of objects without a namespace are in `default`. */
function namespaceOf(event: RecordedEvent): string {
  return event.service?.namespace ?? 'default'
}

interface PendingEvent {
  readonly event: RecordedEvent
  readonly atMs: number
  attempts: number
}

/** The server will never accept it. A missing permission does not count: it may come later than the proxy. */
function isHopeless(error: unknown): boolean {
  return error instanceof ApiError && error.status >= 400 && error.status < 500 && !PASSING.includes(error.status)
}

const PASSING: readonly number[] = [401, 403, 408, 429]

/** The server is overloaded, or cannot be reached. */
function isAboutServer(error: unknown): boolean {
  return !(error instanceof ApiError) || [429, 503, 504].includes(error.status)
}

function shorten(note: string): string {
  const bytes = Buffer.from(note)
  return bytes.length <= MAX_NOTE
    ? note
    : `${bytes
        .subarray(0, MAX_NOTE - 3)
        .toString('utf8')
        .replace(/�+$/, '')}...`
}
