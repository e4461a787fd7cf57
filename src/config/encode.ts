// Encodes a configuration as kube-proxy does: keys in alphabetical order, every field, Go's durations.

import { stringify } from 'yaml'
import { formatDuration } from '../lib/duration.ts'
import type { FieldTable, LeafField } from './field-kinds.ts'
import { nameInMemory } from './field-kinds.ts'
import { apiVersion, configurationFields, kind } from './fields.ts'
import { unsettle } from './settle.ts'
import type { KubeProxyConfiguration } from './types.ts'

/** The file of `--write-config-to`: valid for this program and for kube-proxy. */
export function encodeConfiguration(config: KubeProxyConfiguration): string {
  return stringify(encodeToObject(config), { lineWidth: 0, indentSeq: false })
}

/** The configuration as a JSON object, as /configz serves it. */
export function encodeToObject(config: KubeProxyConfiguration): Record<string, unknown> {
  const fields = encodeFields(configurationFields, unsettle(config))
  return sortKeys({ apiVersion, kind, ...fields })
}

function encodeFields(table: FieldTable, values: Record<string, unknown>): Record<string, unknown> {
  const encoded: Record<string, unknown> = {}
  for (const [name, field] of Object.entries(table)) {
    const value = values[nameInMemory(name, field)]
    if (field.kind === 'object') encoded[name] = encodeFields(field.fields, value as Record<string, unknown>)
    else if (field.omitDefault !== true || !isDefault(field, value)) encoded[name] = encodeLeaf(field, value)
  }
  return sortKeys(encoded)
}

function encodeLeaf(field: LeafField, value: unknown): unknown {
  switch (field.kind) {
    case 'duration':
    case 'duration|nanos':
      return formatDuration(value as number)
    case 'quantity':
      return String(value)
    case 'strings':
      // Go prints a list that was never set as null.
      return (value as readonly string[]).length === 0 ? null : value
    case 'bools':
      return sortKeys(value as Record<string, unknown>)
    default:
      return value
  }
}

function isDefault(field: LeafField, value: unknown): boolean {
  return JSON.stringify(value) === JSON.stringify(field.default)
}

function sortKeys(object: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1)))
}
