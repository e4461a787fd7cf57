// What a client sends, as JSON, whatever it was encoded in.

import type { Buffer } from 'node:buffer'
import { parse as parseYaml } from 'yaml'
import { ApiError, badRequest } from '../api-error.ts'
import { DecodeError } from '../../../../../src/kube/encoding/decode-error.ts'
import { decodeEnvelope, decodeMessage } from '../schema/protobuf-decode.ts'
import { isJsonObject } from '../json.ts'
import { messageOf } from '../../../../../src/lib/errors.ts'
import { messageNamed } from '../schema/schema.ts'
import { readBody as readBodyWithin } from '../../../../../src/serve/http-server.ts'
import type { IncomingMessage } from 'node:http'
import type { Json, JsonObject } from '../json.ts'

const sizeLimit = 3 * 1024 * 1024

export function readBody(request: IncomingMessage): Promise<Buffer> {
  return readBodyWithin(request, sizeLimit)
}

export function mediaType(request: IncomingMessage): string {
  return (request.headers['content-type'] ?? 'application/json').split(';')[0]!.trim().toLowerCase()
}

/** What is expected: in protobuf the bytes alone do not say what they mean. */
export interface Expected {
  readonly kind: string
  readonly message: string
}

export function parseObject(bytes: Buffer, type: string, expected: Expected): JsonObject {
  const value = parseValue(bytes, type, expected)
  if (isJsonObject(value)) return value
  throw badRequest(
    `the object provided is unrecognized (must be of type ${expected.kind}): couldn't get version/kind; json parse error: it is no object`,
  )
}

function parseValue(bytes: Buffer, type: string, expected: Expected): Json {
  switch (type) {
    case 'application/json':
    case '':
      return parseJson(bytes, expected.kind)
    case 'application/yaml':
      return parseYamlText(bytes)
    case 'application/vnd.kubernetes.protobuf':
      return parseProtobuf(bytes, expected)
    default:
      throw new ApiError(
        415,
        'UnsupportedMediaType',
        'the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf',
      )
  }
}

export function parseJson(bytes: Buffer, kind: string): Json {
  try {
    return JSON.parse(bytes.toString('utf8')) as Json
  } catch (error) {
    const start = bytes.toString('utf8', 0, 100)
    throw badRequest(
      `the object provided is unrecognized (must be of type ${kind}): couldn't get version/kind; json parse error: ${messageOf(error)} (${start})`,
    )
  }
}

export function parseYamlText(bytes: Buffer): Json {
  try {
    return parseYaml(bytes.toString('utf8')) as Json
  } catch (error) {
    throw badRequest(`error converting YAML to JSON: ${messageOf(error)}`)
  }
}

function parseProtobuf(bytes: Buffer, expected: Expected): JsonObject {
  try {
    const { type, raw } = decodeEnvelope(bytes)
    if (type.kind !== '' && type.kind !== expected.kind) {
      throw badRequest(`${type.kind} in version "${type.apiVersion}" cannot be handled as a ${expected.kind}`)
    }
    const fields = decodeMessage(messageNamed(expected.message), raw)
    return { kind: type.kind, apiVersion: type.apiVersion, ...fields }
  } catch (error) {
    if (error instanceof DecodeError) throw badRequest(error.message)
    throw error
  }
}
