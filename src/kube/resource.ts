// A kind of API object that we list and watch: where it is served, and how it is read from either encoding.

import type { JsonObject, JsonReader } from './encoding/json-reader.ts'
import type { ProtoReader } from './encoding/proto-reader.ts'

/** An object and what identifies this version of it. */
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
