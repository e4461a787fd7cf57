// The API's scalar types in JSON: which values they accept and how they write them.

import { formatMicroTime, formatTime, parseTime } from '../time.ts'
import type { Json } from '../json.ts'
import type { Scalar } from './schema.ts'

/** The value as the API writes it; undefined when it is none of the type. */
export function decodeScalar(scalar: Scalar, value: Json): Json | undefined {
  return decoders[scalar](value)
}

/** The value that a field has when the client left it out. */
export function zeroOf(scalar: Scalar): Json {
  return zeros[scalar]
}

const zeros: Readonly<Record<Scalar, Json>> = {
  string: '',
  bool: false,
  int32: 0,
  int64: 0,
  float64: 0,
  bytes: '',
  Time: null,
  MicroTime: null,
  Quantity: '0',
  IntOrString: 0,
  Raw: null,
  Fields: null,
}

const decoders: Readonly<Record<Scalar, (value: Json) => Json | undefined>> = {
  string: (value) => (typeof value === 'string' ? value : undefined),
  bool: (value) => (typeof value === 'boolean' ? value : undefined),
  int32: (value) => integer(value, 2 ** 31),
  int64: (value) => integer(value, 2 ** 63),
  float64: (value) => (typeof value === 'number' ? value : undefined),
  bytes: (value) => (typeof value === 'string' && isBase64(value) ? value.replace(/[\r\n]/g, '') : undefined),
  Time: (value) => time(value, formatTime),
  MicroTime: (value) => time(value, formatMicroTime),
  Quantity: (value) => quantity(typeof value === 'number' ? String(value) : value),
  IntOrString: (value) => (typeof value === 'string' ? value : integer(value, 2 ** 31)),
  Raw: (value) => value,
  Fields: (value) => value,
}

function integer(value: Json, limit: number): number | undefined {
  if (typeof value !== 'number' || !Number.isInteger(value)) return undefined
  return value >= -limit && value < limit ? value : undefined
}

function time(value: Json, format: (ms: number) => string): string | undefined {
  const ms = typeof value === 'string' ? parseTime(value) : undefined
  return ms === undefined ? undefined : format(ms)
}

const quantityShape = /^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+|[KMGTPE]i|[numkMGTPE])?$/

function quantity(value: Json): string | undefined {
  return typeof value === 'string' && quantityShape.test(value) ? value : undefined
}

function isBase64(value: string): boolean {
  return /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(value.replace(/[\r\n]/g, ''))
}
