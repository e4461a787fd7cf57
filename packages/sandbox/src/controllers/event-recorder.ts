// What happened, for `kubectl describe` and `kubectl events`.

import { createHash } from 'node:crypto'
import { ApiError } from '../apiserver/api-error.ts'
import { events } from '../apiserver/resources/event.ts'
import { formatTime, parseTime } from '../apiserver/time.ts'
import type { ApiObject } from '../apiserver/objects/meta.ts'
import type { Registry } from '../apiserver/registry/registry.ts'

export interface Occurrence {
  readonly type?: 'Normal' | 'Warning'
  readonly reason: string
  readonly message: string
  /** The component that says so: `kubelet`, `endpoint-slice-controller`. */
  readonly source: string
  readonly host?: string
  readonly fieldPath?: string
}

const lifetimeMs = 3600 * 1000

export class EventRecorder {
  readonly #registry: Registry

  constructor(registry: Registry) {
    this.#registry = registry
  }

  /**
   * Records it. The same thing happening again counts up the event that is there. What cannot be recorded, because the
   * namespace goes away, is not: no controller depends on it.
   */
  record(object: ApiObject, occurrence: Occurrence): void {
    try {
      this.#write(object, occurrence)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
    }
  }

  #write(object: ApiObject, occurrence: Occurrence): void {
    const namespace = object.metadata.namespace ?? 'default'
    const name = eventName(object, occurrence)
    const now = formatTime(this.#registry.now())
    const counted = this.#registry.modify(events, { namespace, name }, (event) => {
      event.count = (event.count ?? 1) + 1
      event.lastTimestamp = now
    })
    if (counted !== undefined) return
    const { type = 'Normal', reason, message, source, host, fieldPath } = occurrence
    this.#registry.create(events, {
      metadata: { name, namespace },
      involvedObject: {
        kind: object.kind,
        namespace: object.metadata.namespace,
        name: object.metadata.name,
        uid: object.metadata.uid,
        apiVersion: object.apiVersion,
        resourceVersion: object.metadata.resourceVersion,
        fieldPath,
      },
      type,
      reason,
      message,
      source: { component: source, host },
      reportingComponent: source,
      reportingInstance: host ?? '',
      firstTimestamp: now,
      lastTimestamp: now,
      count: 1,
    })
  }

  expire(): void {
    const oldest = this.#registry.now() - lifetimeMs
    for (const { object } of this.#registry.collection(events).list()) {
      const { lastTimestamp, eventTime, metadata } = object
      const time = parseTime(lastTimestamp ?? eventTime ?? metadata.creationTimestamp ?? '')
      if (time === undefined || time >= oldest) continue
      this.#registry.delete(events, metadata)
    }
  }
}

/** The same for the same thing, so that it is found again. */
function eventName(object: ApiObject, { reason, message, source, fieldPath = '' }: Occurrence): string {
  const what = [object.metadata.uid, reason, message, source, fieldPath].join('\n')
  return `${object.metadata.name}.${createHash('sha256').update(what).digest('hex').slice(0, 16)}`
}
