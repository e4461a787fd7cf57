// /openapi/v2 in protobuf (gnostic's OpenAPIv2.proto), which is how old clients ask for it: kubectl 1.20 checks fields by
// it before it sends them.

import { ProtoWriter } from '../../../../../src/lib/proto-writer.ts'
import { allDefinitions, kindExtension, objectPath, writeParameters } from './openapi-definitions.ts'
import { resources } from '../resources/table.ts'
import type { Buffer } from 'node:buffer'
import type { Definition } from './openapi-definitions.ts'
import type { Resource } from '../resources/resource.ts'

const DOCUMENT = { swagger: 1, info: 2, paths: 8, definitions: 9 } as const
const INFO = { title: 1, version: 2 } as const
const PATHS = { path: 2 } as const
const NAMED = { name: 1, value: 2 } as const
const PATH_ITEM = { patch: 8 } as const
const OPERATION = { parameters: 8, vendorExtension: 13 } as const
const SCHEMA = {
  ref: 1,
  format: 2,
  required: 19,
  additionalProperties: 21,
  type: 22,
  items: 23,
  properties: 25,
  vendorExtension: 31,
} as const
const ANY = { yaml: 2 } as const
const QUERY_PARAMETER = { in: 2, name: 4, type: 6 } as const

export function encodeOpenApiV2(): Buffer {
  const writer = new ProtoWriter(256 * 1024)
  // Last field first: the writer fills its buffer from the end.
  nested(writer, DOCUMENT.definitions, () => {
    for (const [name, definition] of [...allDefinitions()].reverse()) writeNamed(writer, 1, name, definition)
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
  const [kind] = kindExtension([resource])['x-kubernetes-group-version-kind'] as object[]
  nested(writer, NAMED.value, () =>
    nested(writer, PATH_ITEM.patch, () => {
      writeExtension(writer, OPERATION.vendorExtension, 'x-kubernetes-group-version-kind', kind)
      for (const name of writeParameters) nested(writer, OPERATION.parameters, () => writeParameter(writer, name))
    }),
  )
  writer.string(NAMED.name, objectPath(resource))
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

function writeNamed(writer: ProtoWriter, field: number, name: string, definition: Definition): void {
  nested(writer, field, () => {
    nested(writer, NAMED.value, () => writeSchema(writer, definition))
    writer.string(NAMED.name, name)
  })
}

function writeSchema(writer: ProtoWriter, definition: Definition): void {
  const { ref, type, format, items, additionalProperties, properties, required, extensions } = definition
  for (const [name, value] of Object.entries(extensions ?? {}).reverse()) {
    writeExtension(writer, SCHEMA.vendorExtension, name, value)
  }
  if (properties !== undefined) {
    nested(writer, SCHEMA.properties, () => {
      for (const [name, one] of Object.entries(properties).reverse()) writeNamed(writer, 1, name, one)
    })
  }
  if (items !== undefined) {
    nested(writer, SCHEMA.items, () => nested(writer, 1, () => writeSchema(writer, items)))
  }
  if (type !== undefined) nested(writer, SCHEMA.type, () => writer.string(1, type))
  if (additionalProperties !== undefined) {
    nested(writer, SCHEMA.additionalProperties, () =>
      nested(writer, 1, () => writeSchema(writer, additionalProperties)),
    )
  }
  for (const name of [...(required ?? [])].reverse()) writer.string(SCHEMA.required, name)
  if (format !== undefined) writer.string(SCHEMA.format, format)
  if (ref !== undefined) writer.string(SCHEMA.ref, `#/definitions/${ref}`)
}

/** The value of an extension is YAML, of which JSON is a part. */
function writeExtension(writer: ProtoWriter, field: number, name: string, value: unknown): void {
  nested(writer, field, () => {
    nested(writer, NAMED.value, () => writer.string(ANY.yaml, `${JSON.stringify(value)}\n`))
    writer.string(NAMED.name, name)
  })
}
