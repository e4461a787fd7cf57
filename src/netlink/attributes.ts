// Netlink attributes from tables. One definition gives the encoder, the decoder, the TypeScript type, and the names for
// the debug dump:
//
//     const lookup = nest({ set: attr(NFTA_LOOKUP_SET, cstring), sreg: attr(NFTA_LOOKUP_SREG, be32) })
//     type Lookup = Infer<typeof lookup>     // { readonly set: string; readonly sreg: number }
//
// Byte order is in the name of the codec. Absent is `undefined`. Attributes that the table does not name are skipped.
// Decoding never throws on what a kernel sent: a value that cannot be decoded is `undefined`, and so is what holds it.

import { type Bytes, asBytes, bytesOf } from '../lib/ip.ts'
import { LITTLE_ENDIAN } from '../lib/endian.ts'
import { align4, type Writer } from './writer.ts'

/** Writes and reads the payload of an attribute. */
export interface Codec<T> {
  write(writer: Writer, value: T): void
  /** Reads `view` from start to end; undefined: not a value that this codec knows. */
  read(view: DataView, start: number, end: number): T | undefined
  /** Whether the payload is made of attributes. */
  readonly isNest?: true
}

export type Infer<C> = C extends Codec<infer T> ? T : never

interface Field<T, Presence extends 'required' | 'optional' | 'forbidden'> {
  readonly type: number
  readonly codec: Codec<T>
  readonly presence: Presence
}

type AnyField = Field<unknown, 'required' | 'optional' | 'forbidden'>

type NestValue<F> = {
  readonly [K in keyof F as F[K] extends Field<unknown, 'required'> ? K : never]: F[K] extends Field<
    infer T,
    'required'
  >
    ? T
    : never
} & {
  readonly [K in keyof F as F[K] extends Field<unknown, 'optional'> ? K : never]?: F[K] extends Field<
    infer T,
    'optional'
  >
    ? T
    : never
}

type Flat<T> = { [K in keyof T]: T[K] }

/** An attribute that is always there. */
export function attr<T>(type: number, codec: Codec<T>): Field<T, 'required'> {
  return { type, codec, presence: 'required' }
}

/** An attribute that may be missing. */
export function opt<T>(type: number, codec: Codec<T>): Field<T, 'optional'> {
  return { type, codec, presence: 'optional' }
}

/** An attribute that we do not understand and must not overlook: with it, what holds it cannot be decoded. */
export function forbidden(type: number): Field<never, 'forbidden'> {
  return { type, codec: never, presence: 'forbidden' }
}

/** Attributes by name, written in this order. */
export function nest<F extends Record<string, AnyField>>(fields: F): Codec<Flat<NestValue<F>>> {
  const entries = Object.entries(fields).filter(([, field]) => field.presence !== 'forbidden')
  const required = entries.filter(([, field]) => field.presence === 'required').map(([name]) => name)
  const byType: ({ name: string; codec: Codec<unknown> } | undefined)[] = []
  for (const [name, field] of Object.entries(fields)) byType[field.type] = { name, codec: field.codec }
  return {
    isNest: true,
    write(writer, value) {
      const record = value as Record<string, unknown>
      for (const [name, { type, codec }] of entries) {
        const content = record[name]
        if (content !== undefined) writeAttribute(writer, type, codec, content)
      }
    },
    read(view, start, end) {
      const record: Record<string, unknown> = {}
      for (let at = start; at + 4 <= end;) {
        const length = view.getUint16(at, LITTLE_ENDIAN)
        if (length < 4 || at + length > end) return undefined
        const entry = byType[view.getUint16(at + 2, LITTLE_ENDIAN) & 0x3fff]
        if (entry !== undefined) {
          const content = entry.codec.read(view, at + 4, at + length)
          if (content === undefined) return undefined
          record[entry.name] = content
        }
        at += align4(length)
      }
      for (const name of required) if (record[name] === undefined) return undefined
      return record as Flat<NestValue<F>>
    },
  }
}

/** Any number of attributes of the same type, one after the other. On reading, their type is not looked at. */
export function list<T>(type: number, codec: Codec<T>): Codec<readonly T[]> {
  return {
    isNest: true,
    write(writer, values) {
      for (const value of values) writeAttribute(writer, type, codec, value)
    },
    read(view, start, end) {
      const values: T[] = []
      for (let at = start; at + 4 <= end;) {
        const length = view.getUint16(at, LITTLE_ENDIAN)
        if (length < 4 || at + length > end) return undefined
        const value = codec.read(view, at + 4, at + length)
        if (value === undefined) return undefined
        values.push(value)
        at += align4(length)
      }
      return values
    },
  }
}

/** The same bytes under another type: `decode` may refuse with undefined. */
export function mapped<T, W>(
  codec: Codec<W>,
  encode: (value: T) => NoInfer<W>,
  decode: (wire: W) => T | undefined,
): Codec<T> {
  return {
    ...(codec.isNest === undefined ? {} : { isNest: true as const }),
    write(writer, value) {
      codec.write(writer, encode(value))
    },
    read(view, start, end) {
      const wire = codec.read(view, start, end)
      return wire === undefined ? undefined : decode(wire)
    },
  }
}

/** A number that has a name. */
export function named<const N extends Record<string, number>>(codec: Codec<number>, names: N): Codec<keyof N & string> {
  const byNumber = new Map(Object.entries(names).map(([name, number]) => [number, name as keyof N & string]))
  return mapped(
    codec,
    (name: keyof N & string) => names[name] as number,
    (number) => byNumber.get(number),
  )
}

/** Exactly this value: anything else cannot be decoded. */
export function constant<T>(codec: Codec<T>, value: T): Codec<T> {
  return mapped(
    codec,
    () => value,
    (read) => (read === value ? value : undefined),
  )
}

export const u8: Codec<number> = {
  write: (writer, value) => writer.u8(value),
  read: (view, start, end) => (end - start >= 1 ? view.getUint8(start) : undefined),
}

export const be16: Codec<number> = {
  write: (writer, value) => writer.be16(value),
  read: (view, start, end) => (end - start >= 2 ? view.getUint16(start) : undefined),
}

export const be32: Codec<number> = {
  write: (writer, value) => writer.be32(value),
  read: (view, start, end) => (end - start >= 4 ? view.getUint32(start) : undefined),
}

/** A signed number: the priority of a chain. */
export const sbe32: Codec<number> = {
  write: (writer, value) => writer.be32(value),
  read: (view, start, end) => (end - start >= 4 ? view.getInt32(start) : undefined),
}

export const be64: Codec<bigint> = {
  write: (writer, value) => writer.be64(value),
  read: (view, start, end) => (end - start >= 8 ? view.getBigUint64(start) : undefined),
}

/** 64 bits that are known to be a small number: a duration in milliseconds. */
export const be64number: Codec<number> = mapped(be64, BigInt, Number)

export const ne32: Codec<number> = {
  write: (writer, value) => writer.ne32(value),
  read: (view, start, end) => (end - start >= 4 ? view.getUint32(start, LITTLE_ENDIAN) : undefined),
}

/** ASCII text that ends with a NUL. */
export const cstring: Codec<string> = {
  write(writer, value) {
    writer.raw(asBytes(value))
    writer.u8(0)
  },
  read(view, start, end) {
    const last = end > start && view.getUint8(end - 1) === 0 ? end - 1 : end
    return decodeBytes(view, start, last)
  },
}

export const bytes: Codec<Bytes> = {
  write: (writer, value) => writer.raw(value),
  read: decodeBytes,
}

const never: Codec<never> = {
  write() {},
  read: () => undefined,
}

/**
 * The bytes from start to end. Most of what is read is keys and values of elements, by the hundred thousand, so their
 * lengths have short cuts; none of them makes a string in pieces, which would take several times the memory.
 */
export function decodeBytes(view: DataView, start: number, end: number): Bytes {
  switch (end - start) {
    case 4:
      return read4(view, start)
    case 8:
      return read8(view, start)
    case 12:
      return asBytes(read8(view, start) + read4(view, start + 8))
    case 16:
      return read16(view, start)
    default:
      return latin1(view.buffer, view.byteOffset + start, view.byteOffset + end)
  }
}

function read4(view: DataView, at: number): Bytes {
  return bytesOf(view.getUint8(at), view.getUint8(at + 1), view.getUint8(at + 2), view.getUint8(at + 3))
}

function read8(view: DataView, at: number): Bytes {
  return bytesOf(
    view.getUint8(at),
    view.getUint8(at + 1),
    view.getUint8(at + 2),
    view.getUint8(at + 3),
    view.getUint8(at + 4),
    view.getUint8(at + 5),
    view.getUint8(at + 6),
    view.getUint8(at + 7),
  )
}

function read16(view: DataView, at: number): Bytes {
  return bytesOf(
    view.getUint8(at),
    view.getUint8(at + 1),
    view.getUint8(at + 2),
    view.getUint8(at + 3),
    view.getUint8(at + 4),
    view.getUint8(at + 5),
    view.getUint8(at + 6),
    view.getUint8(at + 7),
    view.getUint8(at + 8),
    view.getUint8(at + 9),
    view.getUint8(at + 10),
    view.getUint8(at + 11),
    view.getUint8(at + 12),
    view.getUint8(at + 13),
    view.getUint8(at + 14),
    view.getUint8(at + 15),
  )
}

/** The Buffer over the memory that was read last: making one costs more than reading from it. */
let latest: Buffer = Buffer.alloc(0)

function latin1(memory: ArrayBufferLike, start: number, end: number): Bytes {
  if (latest.buffer !== memory) latest = Buffer.from(memory)
  return asBytes(latest.toString('latin1', start, end))
}

function writeAttribute<T>(writer: Writer, type: number, codec: Codec<T>, value: T): void {
  if (codec.isNest) writer.beginNested(type)
  else writer.begin(type)
  codec.write(writer, value)
  writer.end()
}
