// The schema in the terms of OpenAPI. What kubectl needs of it: which fields there are, their types, how lists merge, and
// that the server checks fields itself.

import { allMessages } from '../schema/schema.ts'
import { resources } from '../resources/table.ts'
import type { Field, FieldType, Message, Scalar } from '../schema/schema.ts'
import type { Resource } from '../resources/resource.ts'

export interface Definition {
  readonly ref?: string
  readonly type?: string
  readonly format?: string
  readonly items?: Definition
  readonly additionalProperties?: Definition
  readonly properties?: Readonly<Record<string, Definition>>
  readonly required?: readonly string[]
  /** `x-kubernetes-…` */
  readonly extensions?: Readonly<Record<string, unknown>>
}

const packages: Readonly<Record<string, string>> = {
  core: 'io.k8s.api.core.v1',
  apps: 'io.k8s.api.apps.v1',
  discovery: 'io.k8s.api.discovery.v1',
  networking: 'io.k8s.api.networking.v1',
  events: 'io.k8s.api.events.v1',
  autoscaling: 'io.k8s.api.autoscaling.v1',
  policy: 'io.k8s.api.policy.v1',
  coordination: 'io.k8s.api.coordination.v1',
  authentication: 'io.k8s.api.authentication.v1',
  authorization: 'io.k8s.api.authorization.v1',
  rbac: 'io.k8s.api.rbac.v1',
  meta: 'io.k8s.apimachinery.pkg.apis.meta.v1',
}

export function definitionName(message: string): string {
  const [pkg = '', name = ''] = message.split('.')
  return `${packages[pkg]}.${name}`
}

/** Every message, by its name in OpenAPI. */
export function allDefinitions(): Map<string, Definition> {
  const kinds = new Map(resources.map((resource) => [resource.message, resource]))
  const definitions = new Map<string, Definition>()
  for (const message of allMessages()) {
    definitions.set(definitionName(message.name), messageDefinition(message, kinds.get(message.name)))
  }
  return definitions
}

function messageDefinition(message: Message, kind: Resource | undefined): Definition {
  const properties: Record<string, Definition> = {}
  if (kind !== undefined) {
    properties['apiVersion'] = { type: 'string' }
    properties['kind'] = { type: 'string' }
  }
  for (const [name, field] of message.byName) properties[name] = fieldDefinition(field)
  return { type: 'object', properties, ...(kind === undefined ? {} : { extensions: kindExtension([kind]) }) }
}

export function kindExtension(kinds: readonly Pick<Resource, 'group' | 'version' | 'kind'>[]): Record<string, unknown> {
  return { 'x-kubernetes-group-version-kind': kinds.map(({ group, version, kind }) => ({ group, version, kind })) }
}

function fieldDefinition(field: Field): Definition {
  const extensions = fieldExtensions(field)
  const definition = typeDefinition(field.type)
  return Object.keys(extensions).length === 0 ? definition : { ...definition, extensions }
}

function fieldExtensions({ patch }: Field): Record<string, unknown> {
  const strategies = [
    ...(patch !== undefined && (patch.mergeKey !== undefined || !patch.retainKeys) ? [patch.strategy] : []),
    ...(patch?.retainKeys === true ? ['retainKeys'] : []),
  ]
  return {
    ...(strategies.length === 0 ? {} : { 'x-kubernetes-patch-strategy': strategies.join(',') }),
    ...(patch?.mergeKey === undefined ? {} : { 'x-kubernetes-patch-merge-key': patch.mergeKey }),
  }
}

const scalars: Readonly<Record<Scalar, Definition>> = {
  string: { type: 'string' },
  bool: { type: 'boolean' },
  int32: { type: 'integer', format: 'int32' },
  int64: { type: 'integer', format: 'int64' },
  float64: { type: 'number', format: 'double' },
  bytes: { type: 'string', format: 'byte' },
  Time: { type: 'string', format: 'date-time' },
  MicroTime: { type: 'string', format: 'date-time' },
  Quantity: { type: 'string' },
  IntOrString: { type: 'string', format: 'int-or-string' },
  Raw: { type: 'object' },
  Fields: { type: 'object' },
}

function typeDefinition(type: FieldType): Definition {
  switch (type.kind) {
    case 'scalar':
      return scalars[type.scalar]
    case 'message':
      return { ref: definitionName(type.message.name) }
    case 'list':
      return { type: 'array', items: typeDefinition(type.of) }
    case 'map':
      return { type: 'object', additionalProperties: typeDefinition(type.of) }
  }
}

/** The path of one object of a resource: `/api/v1/namespaces/{namespace}/pods/{name}`. */
export function objectPath({ group, version, plural, namespaced }: Resource): string {
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`
  return `${root}/${namespaced ? 'namespaces/{namespace}/' : ''}${plural}/{name}`
}

/** What every write can be told. That `fieldValidation` is among them keeps kubectl from checking fields by itself. */
export const writeParameters = ['dryRun', 'fieldManager', 'fieldValidation'] as const
