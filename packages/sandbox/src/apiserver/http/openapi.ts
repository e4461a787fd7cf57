// /openapi/v2 in protobuf (gnostic's OpenAPIv2.proto), which every kubectl reads. It needs to know which fields there are, their
// types, how lists merge, and that the server checks fields itself.

import { ProtoWriter } from '../../../../../src/lib/proto-writer.ts'
import { allMessages } from '../schema/schema.ts'
import { resources } from '../resources/table.ts'
import type { Buffer } from 'node:buffer'
import type { Field, FieldType, Message, PatchRule, Scalar } from '../schema/schema.ts'
import type { Resource } from '../resources/resource.ts'

const DOCUMENT = { swagger: 1, info: 2, paths: 8, definitions: 9 } as const
const INFO = { title: 1, version: 2 } as const
const PATHS = { path: 2 } as const
const NAMED = { name: 1, value: 2 } as const
const PATH_ITEM = { patch: 8 } as const
const OPERATION = { parameters: 8, vendorExtension: 13 } as const
const SCHEMA = { ref: 1, format: 2, additionalProperties: 21, type: 22, items: 23, properties: 25, vendorExtension: 31 }
const ANY = { yaml: 2 } as const
const QUERY_PARAMETER = { in: 2, name: 4, type: 6 } as const

/** Query parameters of every write. That `fieldValidation` is among them keeps kubectl from checking fields by itself. */
const writeParameters = ['dryRun', 'fieldManager', 'fieldValidation'] as const

export function encodeOpenApi(): Buffer {
  const writer = new ProtoWriter(256 * 1024)
  const kinds = new Map(resources.map((resource) => [resource.message, resource]))
  // Last field first: the writer fills its buffer from the end.
  nested(writer, DOCUMENT.definitions, () => {
    for (const message of [...allMessages()].reverse()) {
      writeNamed(writer, definitionName(message), () => writeMessage(writer, message, kinds.get(message.name)))
    }
  })
  nested(writer, DOCUMENT.paths, () => {
    for (const resource of resources) nested(writer, PATHS.path, () => writePath(writer, resource))
  })
  nested(writer, DOCUMENT.info, () => {
    writer.string(INFO.version, 'unversioned')
    writer.string(INFO.title, 'Kubernetes')
  })
  writer.string(DOCUMENT.swagger, '2.0')
  return writer.finish()
}

function nested(writer: ProtoWriter, field: number, write: () => void): void {
  const since = writer.length
  write()
  writer.message(field, since)
}

function writePath(writer: ProtoWriter, resource: Resource): void {
  const { group, version, plural, namespaced } = resource
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`
  nested(writer, NAMED.value, () =>
    nested(writer, PATH_ITEM.patch, () => {
      writeExtension(writer, OPERATION.vendorExtension, 'x-kubernetes-group-version-kind', kindOf(resource))
      for (const name of writeParameters) nested(writer, OPERATION.parameters, () => writeParameter(writer, name))
    }),
  )
  writer.string(NAMED.name, `${root}/${namespaced ? 'namespaces/{namespace}/' : ''}${plural}/{name}`)
}

/** ParametersItem > Parameter > NonBodyParameter > QueryParameterSubSchema */
function writeParameter(writer: ProtoWriter, name: string): void {
  nested(writer, 1, () =>
    nested(writer, 2, () =>
      nested(writer, 3, () => {
        writer.string(QUERY_PARAMETER.type, 'string')
        writer.string(QUERY_PARAMETER.name, name)
        writer.string(QUERY_PARAMETER.in, 'query')
      }),
    ),
  )
}

function writeMessage(writer: ProtoWriter, message: Message, resource: Resource | undefined): void {
  if (resource !== undefined) {
    writeExtension(writer, SCHEMA.vendorExtension, 'x-kubernetes-group-version-kind', [kindOf(resource)])
  }
  nested(writer, SCHEMA.properties, () => {
    for (const [name, field] of [...message.byName].reverse()) writeNamed(writer, name, () => writeField(writer, field))
    if (resource === undefined) return
    for (const name of ['kind', 'apiVersion']) writeNamed(writer, name, () => writeTypeName(writer, 'string'))
  })
  writeTypeName(writer, 'object')
}

function writeField(writer: ProtoWriter, { type, patch }: Field): void {
  if (patch !== undefined) writePatchRule(writer, patch)
  writeType(writer, type)
}

function writePatchRule(writer: ProtoWriter, { strategy, mergeKey, retainKeys }: PatchRule): void {
  const strategies = [
    ...(mergeKey !== undefined || !retainKeys ? [strategy] : []),
    ...(retainKeys ? ['retainKeys'] : []),
  ].join(',')
  if (mergeKey !== undefined) {
    writeExtension(writer, SCHEMA.vendorExtension, 'x-kubernetes-patch-merge-key', mergeKey)
  }
  writeExtension(writer, SCHEMA.vendorExtension, 'x-kubernetes-patch-strategy', strategies)
}

function writeType(writer: ProtoWriter, type: FieldType): void {
  switch (type.kind) {
    case 'scalar': {
      const [name, format] = scalars[type.scalar]
      writeTypeName(writer, name)
      if (format !== undefined) writer.string(SCHEMA.format, format)
      return
    }
    case 'message':
      writer.string(SCHEMA.ref, `#/definitions/${definitionName(type.message)}`)
      return
    case 'list':
      nested(writer, SCHEMA.items, () => nested(writer, 1, () => writeType(writer, type.of)))
      writeTypeName(writer, 'array')
      return
    case 'map':
      writeTypeName(writer, 'object')
      nested(writer, SCHEMA.additionalProperties, () => nested(writer, 1, () => writeType(writer, type.of)))
  }
}

/** The name of a type in OpenAPI, and how it is written. */
const scalars: Readonly<Record<Scalar, readonly [name: string, format?: string]>> = {
  string: ['string'],
  bool: ['boolean'],
  int32: ['integer', 'int32'],
  int64: ['integer', 'int64'],
  float64: ['number', 'double'],
  bytes: ['string', 'byte'],
  Time: ['string', 'date-time'],
  MicroTime: ['string', 'date-time'],
  Quantity: ['string'],
  IntOrString: ['string', 'int-or-string'],
  Raw: ['object'],
  Fields: ['object'],
}

function writeTypeName(writer: ProtoWriter, name: string): void {
  nested(writer, SCHEMA.type, () => writer.string(1, name))
}

function writeNamed(writer: ProtoWriter, name: string, writeValue: () => void): void {
  nested(writer, 1, () => {
    nested(writer, NAMED.value, writeValue)
    writer.string(NAMED.name, name)
  })
}

/** The value of an extension is YAML, of which JSON is a part. */
function writeExtension(writer: ProtoWriter, field: number, name: string, value: unknown): void {
  nested(writer, field, () => {
    nested(writer, NAMED.value, () => writer.string(ANY.yaml, `${JSON.stringify(value)}\n`))
    writer.string(NAMED.name, name)
  })
}

function kindOf({ group, version, kind }: Resource): object {
  return { group, version, kind }
}

function definitionName({ name: message }: Message): string {
  const [group = '', name = ''] = message.split('.')
  return `io.k8s.${group === 'meta' ? 'apimachinery.pkg.apis' : 'api'}.${group}.v1.${name}`
}
