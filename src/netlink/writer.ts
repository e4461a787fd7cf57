// The buffer that every message is written into. It grows, it is reused, and it allocates nothing per attribute.

import { LITTLE_ENDIAN } from '../lib/endian.ts'
import type { Bytes } from '../lib/ip.ts'

/** The longest attribute, header included: nla_len is 16 bits wide. */
export const MAX_ATTRIBUTE = 0xffff

const NLA_F_NESTED = 0x8000
const ATTRIBUTE_HEADER = 4
const MESSAGE_HEADER = 16

/** Rounds up to a multiple of 4: what netlink aligns messages and attributes to. */
export function align4(length: number): number {
  return (length + 3) & ~3
}

/**
 * Writes netlink messages and attributes. `begin` and `end` nest; lengths are filled in by `end`, once they are known.
 *
 * `bytes` and `view` change when the buffer grows: do not hold on to them across a write.
 */
export class Writer {
  bytes: Uint8Array<ArrayBuffer>
  view: DataView<ArrayBuffer>
  /** How much has been written. */
  length = 0
  readonly #open: number[] = []
  readonly #initial: number

  constructor(capacity = 4096) {
    this.#initial = capacity
    this.bytes = new Uint8Array(capacity)
    this.view = new DataView(this.bytes.buffer)
  }

  /** What has been written, without copying: valid until the next write. */
  written(): Uint8Array<ArrayBuffer> {
    return this.bytes.subarray(0, this.length)
  }

  /** Starts over. A buffer that once had to grow beyond `keep` bytes is given back. */
  reset(keep = 1 << 20): void {
    this.length = 0
    this.#open.length = 0
    if (this.bytes.length <= keep) return
    this.bytes = new Uint8Array(this.#initial)
    this.view = new DataView(this.bytes.buffer)
  }

  /** Makes room for `size` bytes and returns where they start. Their content is undefined: the caller writes all of it. */
  reserve(size: number): number {
    const start = this.length
    const needed = start + size
    if (needed > this.bytes.length) this.#grow(needed)
    this.length = needed
    return start
  }

  u8(value: number): void {
    const at = this.reserve(1)
    this.bytes[at] = value
  }

  be16(value: number): void {
    const at = this.reserve(2)
    this.view.setUint16(at, value)
  }

  be32(value: number): void {
    const at = this.reserve(4)
    this.view.setUint32(at, value)
  }

  be64(value: bigint): void {
    const at = this.reserve(8)
    this.view.setBigUint64(at, value)
  }

  ne16(value: number): void {
    const at = this.reserve(2)
    this.view.setUint16(at, value, LITTLE_ENDIAN)
  }

  ne32(value: number): void {
    const at = this.reserve(4)
    this.view.setUint32(at, value, LITTLE_ENDIAN)
  }

  raw(value: Bytes): void {
    const at = this.reserve(value.length)
    const bytes = this.bytes
    for (let i = 0; i < value.length; i++) bytes[at + i] = value.charCodeAt(i)
  }

  /** Opens an attribute. */
  begin(type: number): void {
    const at = this.reserve(ATTRIBUTE_HEADER)
    this.view.setUint16(at + 2, type, LITTLE_ENDIAN)
    this.#open.push(at)
  }

  /** Opens an attribute that holds attributes. */
  beginNested(type: number): void {
    this.begin(type | NLA_F_NESTED)
  }

  /** Closes the attribute that was opened last: fills in its length and pads to the next multiple of 4. */
  end(): void {
    const at = this.#pop()
    const length = this.length - at
    if (length > MAX_ATTRIBUTE) {
      const type = this.view.getUint16(at + 2, LITTLE_ENDIAN) & ~NLA_F_NESTED
      throw new RangeError(
        `Cannot write attribute ${type}: it is ${length} bytes long, and ${MAX_ATTRIBUTE} is the most that fits`,
      )
    }
    this.view.setUint16(at, length, LITTLE_ENDIAN)
    this.#pad()
  }

  /** Opens a message. Its sequence number and port are left 0: the socket fills them in. */
  beginMessage(type: number, flags: number): void {
    const at = this.reserve(MESSAGE_HEADER)
    this.view.setUint16(at + 4, type, LITTLE_ENDIAN)
    this.view.setUint16(at + 6, flags, LITTLE_ENDIAN)
    this.view.setUint32(at + 8, 0)
    this.view.setUint32(at + 12, 0)
    this.#open.push(at)
  }

  /** Closes the message. */
  endMessage(): void {
    const at = this.#pop()
    this.#pad()
    this.view.setUint32(at, this.length - at, LITTLE_ENDIAN)
  }

  #pop(): number {
    const at = this.#open.pop()
    if (at === undefined) throw new Error('Cannot end: nothing was begun')
    return at
  }

  #pad(): void {
    const gap = align4(this.length) - this.length
    if (gap === 0) return
    const at = this.reserve(gap)
    this.bytes.fill(0, at, at + gap)
  }

  #grow(needed: number): void {
    let capacity = this.bytes.length * 2
    while (capacity < needed) capacity *= 2
    const grown = new Uint8Array(capacity)
    grown.set(this.bytes.subarray(0, this.length))
    this.bytes = grown
    this.view = new DataView(grown.buffer)
  }
}
