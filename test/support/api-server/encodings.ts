// Objects, lists, watch frames and errors as the sandbox's API server encodes them, without a server.

import { Buffer } from 'node:buffer'
import {
  contentTypes,
  encodeEvent,
  encodeItems,
  encodeKind,
  encodeNotice,
} from '../../../packages/sandbox/src/apiserver/http/encode.ts'
import { jsonForm, type Form } from '../../../packages/sandbox/src/apiserver/http/negotiate.ts'
import { services } from '../../../packages/sandbox/src/apiserver/resources/table.ts'
import { Stored } from '../../../packages/sandbox/src/apiserver/store/stored.ts'
import { resourceOf, type ApiObject, type ServedResource } from './objects.ts'
import type { ApiObject as CheckedObject } from '../../../packages/sandbox/src/apiserver/objects/meta.ts'
import type { EventType, View } from '../../../packages/sandbox/src/apiserver/http/encode.ts'
import type { JsonObject } from '../../../packages/sandbox/src/apiserver/json.ts'

export interface StatusBody {
  readonly code: number
  readonly reason: string
  readonly message: string
}

export interface Encoding {
  readonly contentType: string
  readonly watchContentType: string
  list(resource: ServedResource, metadata: Readonly<Record<string, string>>, items: readonly ApiObject[]): Buffer[]
  /** One frame of a watch. */
  frame(type: string, object: ApiObject): Buffer
  errorFrame(status: StatusBody): Buffer
  status(status: StatusBody): Buffer
}

export function statusObject(status: StatusBody): JsonObject {
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', ...status }
}

export function encodingOf(form: Form): Encoding {
  const contentType = contentTypes[form.encoding]
  return {
    contentType,
    watchContentType: form.encoding === 'protobuf' ? `${contentType};stream=watch` : contentType,
    list: (resource, metadata, items) =>
      Array.from(encodeItems(items.map(asStored), metadata, viewOf(resource, form)), (piece) => Buffer.from(piece)),
    // Some tests make up types of events.
    frame: (type, object) => encodeEvent(type as EventType, asStored(object), viewOf(resourceOf(object), form), true),
    errorFrame: (status) => encodeNotice('ERROR', statusObject(status), viewOf(services, form)),
    status: (status) => Buffer.from(encodeKind(statusObject(status), 'meta.Status', form)),
  }
}

export const json = encodingOf(jsonForm)
export const protobuf = encodingOf({ ...jsonForm, encoding: 'protobuf' })

function viewOf(resource: ServedResource, form: Form): View {
  return { resource, form, include: 'Metadata', now: () => 0 }
}

/** Encodings do not tell the key. */
function asStored(object: ApiObject): Stored {
  return new Stored('', object as unknown as CheckedObject, 0)
}
