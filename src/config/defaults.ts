import { ipFamily } from '../lib/ip.ts'
import { splitHostPort } from './checks.ts'
import type { PartialValues } from './decode.ts'
import type { Field, FieldTable, LeafField } from './field-kinds.ts'
import { nameInMemory } from './field-kinds.ts'
import { configurationFields } from './fields.ts'
import type { FileConfiguration } from './fields.ts'

export const healthzPort = 10256
export const metricsPort = 10249

/** A whole configuration from what a file sets. */
export function applyDefaults(values: PartialValues): FileConfiguration {
  const config = fillIn(configurationFields, values) as unknown as FileConfiguration
  // Only an IPv4 bind address keeps the servers on IPv4. Validation rejects an invalid one.
  const ipv4 = ipFamily(config.bindAddress) === 4
  return {
    ...config,
    healthzBindAddress: addressOr(config.healthzBindAddress, ipv4 ? '0.0.0.0' : '[::]', healthzPort),
    metricsBindAddress: addressOr(config.metricsBindAddress, ipv4 ? '127.0.0.1' : '[::1]', metricsPort),
  }
}

function fillIn(table: FieldTable, values: PartialValues): Record<string, unknown> {
  const filled: Record<string, unknown> = {}
  for (const [name, field] of Object.entries(table)) {
    const key = nameInMemory(name, field)
    filled[key] = fillInField(field, values[key])
  }
  return filled
}

function fillInField(field: Field, value: unknown): unknown {
  if (field.kind === 'object') return fillIn(field.fields, (value ?? {}) as PartialValues)
  return value === undefined || (field.zero === 'means-default' && isZero(field, value)) ? field.default : value
}

/** Whether a value is Go's zero value. */
export function isZero(field: LeafField, value: unknown): boolean {
  return field.kind === 'string' ? value === '' : value === 0
}

function addressOr(address: string, defaultHost: string, port: number): string {
  return address === '' ? `${defaultHost}:${port}` : appendPort(address, port)
}

/** Adds the port to a bare IP address. Anything else stays, for validation. */
export function appendPort(address: string, port: number): string {
  if (splitHostPort(address) !== undefined) return address
  const family = ipFamily(address)
  if (family === undefined) return address
  return family === 4 ? `${address}:${port}` : `[${address}]:${port}`
}
