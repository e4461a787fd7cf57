// Status objects (meta/v1), which explain errors, from either encoding.

import type { Buffer } from 'node:buffer'
import type { ApiStatus } from '../api-error.ts'
import { isJsonObject, type JsonObject } from '../../lib/json.ts'
import { JsonReader } from './json-reader.ts'
import { field, list, messageToJson, type Message } from './message-to-json.ts'
import { hasMagic, openEnvelope } from './protobuf-envelope.ts'
import { ProtoReader } from './proto-reader.ts'
import { StringPool } from './string-pool.ts'

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
    // Not a Status: the text itself is the message.
  }
  const message = body.toString('utf8').trim().slice(0, SHOWN_TEXT)
  return { code, reason: '', message, causes: [], retryAfterSeconds: 0 }
}

const STATUS: Message = {
  3: field('message', 'text'),
  4: field('reason', 'text'),
  5: field('details', { 4: list('causes', { 1: field('reason', 'text') }), 5: field('retryAfterSeconds', 'number') }),
  6: field('code', 'number'),
}

export function statusFromProtobuf(reader: ProtoReader, end: number): ApiStatus {
  return statusFromJson(messageToJson(reader, end, STATUS))
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
