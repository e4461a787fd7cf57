// The two encodings of the API. The Content-Type of the answer decides, whatever the request accepted.

import type { Resource } from '../resource.ts'
import { DecodeError } from './decode-error.ts'
import { JsonListParser } from './json-list.ts'
import { JsonWatchParser } from './json-watch.ts'
import type { ListParser } from './list-parser.ts'
import { ProtobufListParser } from './protobuf-list.ts'
import { ProtobufWatchParser } from './protobuf-watch.ts'
import type { StringPool } from './string-pool.ts'
import type { WatchParser } from './watch-parser.ts'

export const PROTOBUF = 'application/vnd.kubernetes.protobuf'
export const JSON_TYPE = 'application/json'

export function listParserFor<T>(contentType: string, resource: Resource<T>, pool: StringPool): ListParser<T> {
  return isProtobuf(contentType) ? new ProtobufListParser(resource, pool) : new JsonListParser(resource, pool)
}

export function watchParserFor<T>(contentType: string, resource: Resource<T>, pool: StringPool): WatchParser<T> {
  return isProtobuf(contentType) ? new ProtobufWatchParser(resource, pool) : new JsonWatchParser(resource, pool)
}

function isProtobuf(contentType: string): boolean {
  const mediaType = contentType.split(';', 1)[0]!.trim().toLowerCase()
  if (mediaType === PROTOBUF) return true
  if (mediaType === JSON_TYPE) return false
  throw new DecodeError(
    `Cannot decode answer of type ${JSON.stringify(contentType)}: allowed are ${PROTOBUF} and ${JSON_TYPE}`,
  )
}
