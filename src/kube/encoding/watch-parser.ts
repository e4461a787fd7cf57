// The endless answer to a watch request, cut into frames.

import type { Buffer } from 'node:buffer'
import type { ApiStatus } from '../api-error.ts'

/** One frame of a watch. */
export type WatchFrame<T> =
  | { readonly type: 'set'; readonly key: string; readonly resourceVersion: string; readonly object: T }
  | { readonly type: 'delete'; readonly key: string; readonly resourceVersion: string }
  /** Nothing changed; the server has come as far as this version. */
  | { readonly type: 'bookmark'; readonly resourceVersion: string }
  /** The server gives up this watch. */
  | { readonly type: 'error'; readonly status: ApiStatus }
  /** A frame that cannot be read. Nothing after it can be trusted. */
  | { readonly type: 'malformed'; readonly error: Error }

export interface WatchParser<T> {
  /** Takes the next bytes, appends the frames that they complete to `frames`. Never throws. */
  push(chunk: Buffer, frames: WatchFrame<T>[]): void
  /** Bytes of a frame that has not arrived completely. */
  readonly pendingBytes: number
}
