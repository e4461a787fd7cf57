import { durationForm, nanosToMs, parseDuration } from '../lib/duration.ts'
import { parseQuantity } from '../lib/quantity.ts'
import type { LeafField } from './field-kinds.ts'

export type ScalarResult = { readonly value: unknown } | { readonly message: string }

/** The words that Go's YAML reads as booleans when they are not quoted. */
const boolWords: ReadonlyMap<string, boolean> = new Map([
  ...['y', 'Y', 'yes', 'Yes', 'YES', 'on', 'On', 'ON'].map((word) => [word, true] as const),
  ...['n', 'N', 'no', 'No', 'NO', 'off', 'Off', 'OFF'].map((word) => [word, false] as const),
])

/** The value in memory of a YAML or JSON value, or a message about what is allowed. */
export function decodeScalar(kind: LeafField['kind'], raw: unknown, plain: boolean): ScalarResult {
  switch (kind) {
    case 'string':
      return typeof raw === 'string' ? { value: raw } : { message: 'must be text; put it in quotes' }
    case 'bool|annotated': {
      if (raw === 'annotated') return { value: raw }
      const read = decodeScalar('bool', raw, plain)
      return 'value' in read ? read : { message: `${read.message}, or annotated` }
    }
    case 'bool': {
      const word = plain && typeof raw === 'string' ? boolWords.get(raw) : undefined
      if (word !== undefined) return { value: word }
      return typeof raw === 'boolean' ? { value: raw } : { message: 'must be true or false' }
    }
    case 'int32':
    case 'int32?':
      return integer(raw, -(2 ** 31), 2 ** 31 - 1)
    case 'uint32':
      return integer(raw, 0, 2 ** 32 - 1)
    case 'float':
      return typeof raw === 'number' && Number.isFinite(raw) ? { value: raw } : { message: 'must be a number' }
    case 'duration':
      return duration(raw)
    case 'duration|nanos':
      return Number.isInteger(raw) ? { value: nanosToMs(BigInt(raw as number)) } : duration(raw)
    case 'quantity': {
      const value = typeof raw === 'string' || typeof raw === 'number' ? parseQuantity(String(raw)) : undefined
      return value === undefined ? { message: 'must be a quantity such as "512", "1K" or "2Ki"' } : { value }
    }
    default:
      return { message: 'must be a list or a map' }
  }
}

function integer(raw: unknown, low: number, high: number): ScalarResult {
  return Number.isInteger(raw) && (raw as number) >= low && (raw as number) <= high
    ? { value: raw }
    : { message: `must be a whole number from ${low} to ${high}` }
}

function duration(raw: unknown): ScalarResult {
  const value = typeof raw === 'string' ? parseDuration(raw) : undefined
  return value === undefined ? { message: durationForm } : { value }
}
