// Objects, lists and single events of a watch as bytes, in the form that the client asked for.

import { Buffer } from 'node:buffer'
import { stringify as stringifyYaml } from 'yaml'
import { apiVersionOf } from '../resources/resource.ts'
import { encodeEnvelope, encodeList, encodeMessage, encodeWatchFrame } from '../schema/protobuf-encode.ts'
import { formatMetadata, tableOf } from './table.ts'
import { messageNamed } from '../schema/schema.ts'
import type { ApiObject } from '../objects/meta.ts'
import type { Form } from './negotiate.ts'
import type { IncludeObject } from './table.ts'
import type { JsonObject } from '../json.ts'
import type { Resource } from '../resources/resource.ts'
import type { Stored } from '../store/stored.ts'

export interface View {
  readonly resource: Resource
  readonly form: Form
  readonly include: IncludeObject
  readonly now: () => number
}

export const contentTypes = {
  json: 'application/json',
  yaml: 'application/yaml',
  protobuf: 'application/vnd.kubernetes.protobuf',
} as const

/** An object in the version that the resource of the request has, if it is kept as another. */
export function inVersion(resource: Resource, stored: Stored): ApiObject {
  return resource.storedAs === undefined ? stored.object : resource.storedAs.fromStored(stored.object)
}

export function encodeStored(stored: Stored, view: View): Buffer | string {
  const { resource, form } = view
  const metadata = { resourceVersion: stored.object.metadata.resourceVersion }
  if (form.shape === 'table') {
    return encodeValue(tableOf(resource, [stored.object], { ...tableOptions(view), metadata }), form)
  }
  if (form.shape === 'metadata') return encodeValue(formatMetadata(stored.object), form)
  if (form.encoding === 'protobuf') return encodeEnvelope(typeOf(resource), protobufOf(resource, stored))
  if (form.encoding === 'json' && resource.storedAs === undefined) return stored.json
  return encodeValue(inVersion(resource, stored), form)
}

function tableOptions({ include, now }: View) {
  return { nowMs: now(), include, withColumns: true }
}

function typeOf(resource: Resource) {
  return { apiVersion: apiVersionOf(resource), kind: resource.kind }
}

function protobufOf(resource: Resource, stored: Stored): Buffer {
  if (resource.storedAs === undefined) return stored.protobuf(resource.message)
  return encodeMessage(messageNamed(resource.message), inVersion(resource, stored) as unknown as JsonObject)
}

export function encodeValue(value: object, form: Form): string {
  return form.encoding === 'yaml' ? stringifyYaml(value, { aliasDuplicateObjects: false }) : JSON.stringify(value)
}

/** A value of a kind that has a message, in protobuf if that was asked for. */
export function encodeKind(value: ApiObject | JsonObject, message: string, form: Form): Buffer | string {
  if (form.encoding !== 'protobuf') return encodeValue(value, form)
  const { apiVersion, kind } = value as ApiObject
  return encodeEnvelope({ apiVersion, kind }, encodeMessage(messageNamed(message), value as unknown as JsonObject))
}

/** A list in pieces, none of them large: what is sent first leaves while the rest is still being made. */
export function encodeItems(items: readonly Stored[], metadata: JsonObject, view: View): Iterable<Buffer | string> {
  const { resource, form } = view
  const type = { apiVersion: apiVersionOf(resource), kind: `${resource.kind}List` }
  if (form.shape === 'table') {
    const objects = items.map(({ object }) => object)
    return [encodeValue(tableOf(resource, objects, { ...tableOptions(view), metadata }), form)]
  }
  if (form.shape === 'metadata') {
    const head = { kind: 'PartialObjectMetadataList', apiVersion: 'meta.k8s.io/v1', metadata }
    return [encodeValue({ ...head, items: items.map(({ object }) => formatMetadata(object)) }, form)]
  }
  if (form.encoding === 'protobuf') {
    return encodeList(
      type,
      metadata,
      items.map((item) => protobufOf(resource, item)),
    )
  }
  if (form.encoding === 'yaml') {
    return [encodeValue({ ...type, metadata, items: items.map((item) => inVersion(resource, item)) }, form)]
  }
  return jsonList(items, { ...view, type, metadata })
}

const pieceLength = 256 * 1024

function* jsonList(
  items: readonly Stored[],
  { resource, type, metadata }: View & { type: object; metadata: JsonObject },
): Iterable<string> {
  let piece = `${JSON.stringify({ ...type, metadata }).slice(0, -1)},"items":[`
  for (const [i, item] of items.entries()) {
    piece +=
      (i === 0 ? '' : ',') + (resource.storedAs === undefined ? item.body : JSON.stringify(inVersion(resource, item)))
    if (piece.length < pieceLength) continue
    yield piece
    piece = ''
  }
  yield `${piece}]}\n`
}

export const eventTypes = ['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR'] as const
export type EventType = (typeof eventTypes)[number]

const frames = new WeakMap<Stored, Map<string, Buffer>>()

/** One event of a watch. Watchers of the same thing share the bytes. */
export function encodeEvent(type: EventType, stored: Stored, view: View, withColumns: boolean): Buffer {
  if (view.form.shape !== 'object') return encodeShapedEvent(type, stored, view, withColumns)
  const { resource, form } = view
  let known = frames.get(stored)
  if (known === undefined) frames.set(stored, (known = new Map()))
  const key = `${type} ${form.encoding} ${resource.message}`
  let frame = known.get(key)
  if (frame === undefined) known.set(key, (frame = makeFrame(type, stored, view)))
  return frame
}

function makeFrame(type: EventType, stored: Stored, { resource, form }: View): Buffer {
  if (form.encoding === 'protobuf') return encodeWatchFrame(type, typeOf(resource), protobufOf(resource, stored))
  const json = resource.storedAs === undefined ? stored.json : JSON.stringify(inVersion(resource, stored))
  return Buffer.from(`{"type":"${type}","object":${json}}\n`)
}

function encodeShapedEvent(type: EventType, stored: Stored, view: View, withColumns: boolean): Buffer {
  const { resource, form } = view
  const metadata = { resourceVersion: stored.object.metadata.resourceVersion }
  const object =
    form.shape === 'metadata'
      ? formatMetadata(stored.object)
      : tableOf(resource, [stored.object], { ...tableOptions(view), withColumns, metadata })
  return Buffer.from(`${JSON.stringify({ type, object })}\n`)
}

/** A bookmark or an error, which is about no object. */
export function encodeNotice(type: EventType, object: JsonObject, view: View): Buffer {
  if (view.form.encoding !== 'protobuf') return Buffer.from(`${JSON.stringify({ type, object })}\n`)
  const isStatus = object['kind'] === 'Status'
  const message = messageNamed(isStatus ? 'meta.Status' : view.resource.message)
  const typeMeta = isStatus ? { apiVersion: 'v1', kind: 'Status' } : typeOf(view.resource)
  return encodeWatchFrame(type, typeMeta, encodeMessage(message, object))
}
