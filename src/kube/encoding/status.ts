// Status objects (meta/v1), which explain errors, from either encoding.

import type { Buffer } from 'node:buffer'
import type { ApiStatus } from '../api-error.ts'
import { isJsonObject, JsonReader, type JsonObject } from './json-reader.ts'
import { hasMagic, openEnvelope } from './protobuf-envelope.ts'
import { ProtoReader } from './proto-reader.ts'
import { StringPool } from './string-pool.ts'

/** The longest piece of an unreadable error body that is worth showing. */
const SHOWN_TEXT = 300

/** Reads the body of a response whose status is not 2xx. Never throws: the body may come from a proxy, or be cut. */
export function parseStatus(code: number, body: Buffer): ApiStatus {
  try {
    const reader = new ProtoReader(body, new StringPool(16))
    if (hasMagic(body, 0, body.length)) {
      openEnvelope(reader)
      return { ...statusFromProtobuf(reader, reader.limit), code }
    }
    const json: unknown = JSON.parse(body.toString('utf8'))
    if (isJsonObject(json) && json['kind'] === 'Status') return { ...statusFromJson(json), code }
  } catch {
    // Not a Status; the text itself is the best explanation there is.
  }
  const message = body.toString('utf8').trim().slice(0, SHOWN_TEXT)
  return { code, reason: '', message, causes: [], retryAfterSeconds: 0 }
}

export function statusFromProtobuf(reader: ProtoReader, end: number): ApiStatus {
  let code = 0
  let reason = ''
  let message = ''
  const details = { causes: [] as string[], retryAfterSeconds: 0 }
  while (reader.pos < end) {
    switch (reader.field(end)) {
      case 3:
        message = reader.string()
        break
      case 4:
        reason = reader.string()
        break
      case 5:
        decodeDetails(reader, details)
        break
      case 6:
        code = reader.int()
        break
      default:
        reader.skip(end)
    }
  }
  return { code, reason, message, ...details }
}

function decodeDetails(reader: ProtoReader, details: { causes: string[]; retryAfterSeconds: number }): void {
  for (const end = reader.enter(); reader.pos < end;) {
    switch (reader.field(end)) {
      case 4:
        for (const causeEnd = reader.enter(); reader.pos < causeEnd;) {
          if (reader.field(causeEnd) === 1) details.causes.push(reader.string())
          else reader.skip(causeEnd)
        }
        break
      case 5:
        details.retryAfterSeconds = reader.int()
        break
      default:
        reader.skip(end)
    }
  }
}

export function statusFromJson(json: JsonObject): ApiStatus {
  const reader = new JsonReader(new StringPool(16))
  const details = reader.object(json['details'])
  return {
    code: reader.int(json['code']),
    reason: reader.string(json['reason']),
    message: reader.string(json['message']),
    causes: reader.objects(details['causes']).map((cause) => reader.string(cause['reason'])),
    retryAfterSeconds: reader.int(details['retryAfterSeconds']),
  }
}
