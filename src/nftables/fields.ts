// Single fields of keys and values: to kernel bytes, and to nft's text.

import { host32, decodeHost32 } from '../lib/endian.ts'
import { type Bytes, formatIp, parseIp, asBytes, bytesOf } from '../lib/ip.ts'
import type { FieldType } from './types.ts'

/** IANA protocol numbers of the protocols that Services can have. */
export const PROTOCOL_NUMBERS = { TCP: 6, UDP: 17, SCTP: 132 } as const

export type TransportProtocol = keyof typeof PROTOCOL_NUMBERS

const PROTOCOL_FIELDS = {
  TCP: '\x06\0\0\0',
  UDP: '\x11\0\0\0',
  SCTP: '\x84\0\0\0',
} as const

/** Bytes that each field type takes in a key, padding included. */
export const FIELD_BYTES: Readonly<Record<FieldType, number>> = {
  ipv4_addr: 4,
  ipv6_addr: 16,
  inet_proto: 4,
  inet_service: 4,
  integer: 4,
}

export function addressField(ip: string): Bytes {
  const bytes = parseIp(ip)
  if (bytes === undefined) throw new TypeError(`Cannot encode ${JSON.stringify(ip)}: not an IP address`)
  return bytes
}

export function protocolField(protocol: TransportProtocol): Bytes {
  return asBytes(PROTOCOL_FIELDS[protocol])
}

export function portField(port: number): Bytes {
  if (port !== lastPort) {
    lastPort = port
    lastPortField = bytesOf(port >> 8, port & 0xff, 0, 0)
  }
  return lastPortField
}

/** Fields are asked for by the million, and mostly for the same port again. */
let lastPort = -1
let lastPortField: Bytes = asBytes('')

export function integerField(value: number): Bytes {
  return value < SMALL ? (smallIntegers[value] ??= host32(value)) : host32(value)
}

/** Most numbers are places in short lists. */
const SMALL = 1024
const smallIntegers: Bytes[] = []

/** The fields of a key or value, in order, without splitting further. */
export function splitFields(types: readonly FieldType[], bytes: Bytes): Bytes[] {
  const fields: Bytes[] = []
  let offset = 0
  for (const type of types) {
    fields.push(bytes.slice(offset, offset + FIELD_BYTES[type]))
    offset += FIELD_BYTES[type]
  }
  return fields
}

/** A key or value as nft prints it: `10.0.0.1 . tcp . 80`. */
export function formatFields(types: readonly FieldType[], bytes: Bytes): string {
  return splitFields(types, bytes)
    .map((field, i) => formatField(types[i]!, field))
    .join(' . ')
}

function formatField(type: FieldType, field: Bytes): string {
  switch (type) {
    case 'ipv4_addr':
    case 'ipv6_addr':
      return formatIp(field)
    case 'inet_proto':
      return formatProtocol(field.charCodeAt(0))
    case 'inet_service':
      return String(decodePort(field))
    case 'integer':
      return String(decodeHost32(field))
  }
}

/** Of a field, or of two bytes of a packet. */
export function decodePort(bytes: string): number {
  return (bytes.charCodeAt(0) << 8) | bytes.charCodeAt(1)
}

function formatProtocol(number: number): string {
  for (const [name, value] of Object.entries(PROTOCOL_NUMBERS)) {
    if (value === number) return name.toLowerCase()
  }
  return String(number)
}
