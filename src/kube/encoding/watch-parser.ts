// The endless answer to a watch request, cut into frames.

import type { Buffer } from 'node:buffer'
import type { ApiStatus } from '../api-error.ts'
import type { Decoded } from '../resource.ts'
import { DecodeError } from './decode-error.ts'

/** One frame of a watch. */
export type WatchFrame<T> =
  | { readonly type: 'set'; readonly key: string; readonly resourceVersion: string; readonly object: T }
  | { readonly type: 'delete'; readonly key: string; readonly resourceVersion: string }
  /** Nothing changed up to this version. */
  | { readonly type: 'bookmark'; readonly resourceVersion: string }
  /** The server ends this watch. */
  | { readonly type: 'error'; readonly status: ApiStatus }
  /** A frame that cannot be decoded: what follows it cannot be trusted. */
  | { readonly type: 'malformed'; readonly error: Error }

export interface WatchParser<T> {
  /** Takes the next bytes, appends the frames that they complete to `frames`. Never throws. */
  push(chunk: Buffer, frames: WatchFrame<T>[]): void
  /** Bytes of a frame that has not arrived completely. */
  readonly pendingBytes: number
}

/** The frame of an event that carries an object. */
export function frameOf<T>(resource: string, type: unknown, decoded: Decoded<T>): WatchFrame<T> {
  const { key, resourceVersion, object } = decoded
  if (type === 'BOOKMARK') return { type: 'bookmark', resourceVersion }
  if (key === '') return malformed(resource, 'an object has no name')
  if (type === 'ADDED' || type === 'MODIFIED') return { type: 'set', key, resourceVersion, object }
  if (type === 'DELETED') return { type: 'delete', key, resourceVersion }
  return malformed(resource, `unknown event ${JSON.stringify(type)}`)
}

export function malformed(resource: string, reason: string): WatchFrame<never> {
  return { type: 'malformed', error: new DecodeError(`Cannot decode watch of ${resource}: ${reason}`) }
}
