// A kind of API object: its URL, and its readers for both encodings.

import type { JsonObject } from '../lib/json.ts'
import type { JsonReader } from './encoding/json-reader.ts'
import type { ProtoReader } from './encoding/proto-reader.ts'

/** An object with its identity and version. */
export interface Decoded<T> {
  readonly key: string
  readonly resourceVersion: string
  readonly object: T
}

export interface Resource<T> {
  /** The plural, as in the URL: `endpointslices`. */
  readonly name: string
  /** `EndpointSlice`. */
  readonly kind: string
  /** `/apis/discovery.k8s.io/v1/endpointslices`. */
  readonly path: string
  /** Reads the object's message, which ends at `end`. */
  fromProtobuf(reader: ProtoReader, end: number): Decoded<T>
  fromJson(json: JsonObject, reader: JsonReader): Decoded<T>
}
