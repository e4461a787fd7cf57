// The answer to a list request, decoded while it arrives: a list of any size needs the memory of one object.

import type { Buffer } from 'node:buffer'
import type { Decoded } from '../resource.ts'
import type { JsonObject } from '../../lib/json.ts'
import type { JsonReader } from './json-reader.ts'

export interface ListMeta {
  readonly resourceVersion: string
  /** The token of the next page; empty on the last one. */
  readonly continueToken: string
}

export interface ListParser<T> {
  /** Takes the next bytes, appends the objects that they complete to `objects`. */
  push(chunk: Buffer, objects: Decoded<T>[]): void
  /** After the last byte. Throws when the list is incomplete. */
  finish(): ListMeta
}

/** Reads `metadata` of a list. */
export function listMetaFrom(metadata: JsonObject, reader: JsonReader): ListMeta {
  return {
    resourceVersion: reader.string(metadata['resourceVersion']),
    continueToken: reader.string(metadata['continue']),
  }
}
