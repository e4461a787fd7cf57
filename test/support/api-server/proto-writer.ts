// Writes the protobuf wire format from plain objects, guided by tables of field numbers.

import { Buffer } from 'node:buffer'

/** How one JSON field is written: its number, its type, and whether it repeats. */
export type Field = readonly [number: number, type: FieldType, repeated?: 'repeated']

export type FieldType = 'string' | 'int' | 'bool' | 'time' | 'map' | 'intOrString' | Schema

/** A message: its JSON field names in the order in which they are written. */
export interface Schema {
  readonly [field: string]: Field
}

export class ProtoWriter {
  #bytes = Buffer.allocUnsafe(16 * 1024)
  #pos = 0

  /** Takes what was written, and starts over. */
  finish(): Buffer {
    const written = Buffer.from(this.#bytes.subarray(0, this.#pos))
    this.#pos = 0
    return written
  }

  message(schema: Schema, object: unknown): void {
    const values = object as Readonly<Record<string, unknown>>
    for (const name in schema) {
      const value = values[name]
      if (value === undefined || value === null) continue
      const [number, type, repeated] = schema[name]!
      if (type === 'map') this.#map(number, value as Record<string, string>)
      else if (repeated === undefined) this.#field(number, type, value)
      else for (const element of value as unknown[]) this.#field(number, type, element)
    }
  }

  string(number: number, text: string): void {
    this.#varint((number << 3) | 2)
    const length = Buffer.byteLength(text)
    this.#varint(length)
    this.#reserve(length)
    this.#pos += this.#bytes.write(text, this.#pos)
  }

  bytes(number: number, bytes: Buffer): void {
    this.#varint((number << 3) | 2)
    this.#varint(bytes.length)
    this.raw(bytes)
  }

  raw(bytes: Buffer): void {
    this.#reserve(bytes.length)
    this.#pos += bytes.copy(this.#bytes, this.#pos)
  }

  nested(number: number, write: () => void): void {
    this.#varint((number << 3) | 2)
    this.#reserve(1)
    const lengthAt = this.#pos++
    write()
    const length = this.#pos - lengthAt - 1
    const extra = varintSize(length) - 1
    if (extra > 0) {
      // The length turned out longer than the one byte that was left for it.
      this.#reserve(extra)
      this.#bytes.copyWithin(lengthAt + 1 + extra, lengthAt + 1, this.#pos)
    }
    const end = this.#pos + extra
    this.#pos = lengthAt
    this.#varint(length)
    this.#pos = end
  }

  #field(number: number, type: FieldType, value: unknown): void {
    switch (type) {
      case 'string':
        return this.string(number, value as string)
      case 'int':
        return this.#int(number, value as number)
      case 'bool':
        return this.#int(number, value === true ? 1 : 0)
      case 'time':
        return this.nested(number, () => this.#int(1, Math.floor(Date.parse(value as string) / 1000)))
      case 'intOrString':
        return this.nested(number, () => {
          this.#int(1, typeof value === 'string' ? 1 : 0)
          if (typeof value === 'string') this.string(3, value)
          else this.#int(2, value as number)
        })
      case 'map':
        return
      default:
        return this.nested(number, () => this.message(type, value))
    }
  }

  #map(number: number, map: Record<string, string>): void {
    for (const [key, value] of Object.entries(map)) {
      this.nested(number, () => {
        this.string(1, key)
        this.string(2, value)
      })
    }
  }

  #int(number: number, value: number): void {
    this.#varint(number << 3)
    if (value >= 0) return this.#varint(value)
    // Negative integers are sign-extended to 64 bits: ten bytes.
    let rest = BigInt.asUintN(64, BigInt(value))
    for (; rest >= 0x80n; rest >>= 7n) this.#byte(Number(rest & 0x7fn) | 0x80)
    this.#byte(Number(rest))
  }

  #varint(value: number): void {
    let rest = value
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) this.#byte((rest % 0x80) | 0x80)
    this.#byte(rest)
  }

  #byte(byte: number): void {
    this.#reserve(1)
    this.#bytes[this.#pos++] = byte
  }

  #reserve(length: number): void {
    if (this.#pos + length <= this.#bytes.length) return
    const bigger = Buffer.allocUnsafe((this.#pos + length) * 2)
    this.#bytes.copy(bigger, 0, 0, this.#pos)
    this.#bytes = bigger
  }
}

function varintSize(value: number): number {
  let size = 1
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) size++
  return size
}
