// A minimal reader of the protobuf wire format: a cursor over a buffer. Callers walk messages field by field, so that an unused
// field costs a skip and no allocation.
//
//   for (const end = reader.enter(); reader.pos < end; ) {
//     switch (reader.field(end)) {
//       case 1: name = reader.string(); break
//       default: reader.skip(end)
//     }
//   }

import type { Buffer } from 'node:buffer'
import { DecodeError } from './decode-error.ts'
import type { StringPool } from './string-pool.ts'

const VARINT = 0
const FIXED64 = 1
const LENGTH_DELIMITED = 2
const FIXED32 = 5

export class ProtoReader {
  bytes: Buffer
  pos: number
  /** Where the readable part of the buffer ends. Nothing is read beyond it. */
  limit: number
  /** The wire type of the field that field() found. */
  wireType: number
  readonly pool: StringPool

  constructor(bytes: Buffer, pool: StringPool) {
    this.bytes = bytes
    this.pos = 0
    this.limit = bytes.length
    this.wireType = LENGTH_DELIMITED
    this.pool = pool
  }

  /** Continues in another buffer; the next value may be a length, for enter(). */
  reset(bytes: Buffer, pos: number, limit: number): void {
    this.bytes = bytes
    this.pos = pos
    this.limit = limit
    this.wireType = LENGTH_DELIMITED
  }

  /** The number of the next field of a message that ends at `end`. Its value comes next. */
  field(end: number): number {
    const tag = this.varint64()
    if (this.pos > end || tag < 8) this.#fail('invalid tag')
    this.wireType = tag & 7
    return Math.floor(tag / 8)
  }

  /** Enters a nested message: returns where it ends. */
  enter(): number {
    if (this.wireType !== LENGTH_DELIMITED) this.#fail(`wire type ${this.wireType} where a length was expected`)
    const length = this.varint64()
    const end = this.pos + length
    if (end > this.limit) this.#fail(`${length} bytes announced, more than there are`)
    return end
  }

  /** A string that is mostly unique: a name, an address. */
  string(): string {
    const end = this.enter()
    const from = this.pos
    this.pos = end
    for (let i = from; i < end; i++) {
      if (this.bytes[i]! > 0x7f) return this.bytes.toString('utf8', from, end)
    }
    return this.bytes.toString('latin1', from, end)
  }

  /** A string that many objects have: a namespace, a node name, a protocol. */
  pooled(): string {
    const end = this.enter()
    const from = this.pos
    this.pos = end
    return this.pool.fromBytes(this.bytes, from, end)
  }

  bool(): boolean {
    return this.int() !== 0
  }

  /** A field of type int32 or int64. Exact between -2^31 and 2^53, which is all that the API holds. */
  int(): number {
    if (this.wireType !== VARINT) this.#fail(`wire type ${this.wireType} where an integer was expected`)
    const start = this.pos
    const value = this.varint64()
    if (value < 2 ** 63) return value
    // Negative: sign-extended to 64 bits, so the lowest five groups of seven bits hold all of an int32.
    let low = 0
    for (let i = 0; i < 5; i++) low |= (this.bytes[start + i]! & 0x7f) << (7 * i)
    return low
  }

  skip(end: number): void {
    switch (this.wireType) {
      case VARINT:
        this.varint64()
        break
      case FIXED64:
        this.pos += 8
        break
      case LENGTH_DELIMITED:
        this.pos = this.enter()
        break
      case FIXED32:
        this.pos += 4
        break
      default:
        this.#fail(`unknown wire type ${this.wireType}`)
    }
    if (this.pos > end) this.#fail('field reaches past the end of its message')
  }

  /** An unsigned integer; exact up to 2^53. */
  varint64(): number {
    if (this.pos >= this.limit) this.#fail('ends early')
    const first = this.bytes[this.pos++]!
    if (first < 0x80) return first
    let value = first & 0x7f
    let factor = 0x80
    for (let i = 1; i < 10; i++) {
      if (this.pos >= this.limit) this.#fail('ends early')
      const byte = this.bytes[this.pos++]!
      value += (byte & 0x7f) * factor
      if (byte < 0x80) return value
      factor *= 0x80
    }
    return this.#fail('integer longer than 10 bytes')
  }

  #fail(reason: string): never {
    throw new DecodeError(`Cannot decode protobuf at offset ${this.pos}: ${reason}`)
  }
}
