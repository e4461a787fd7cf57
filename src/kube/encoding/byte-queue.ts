// Received bytes that are not decoded yet, in one reused buffer: a response of 20 MB comes in a thousand pieces, which do not end
// where an object does.

import { Buffer } from 'node:buffer'

const INITIAL_SIZE = 128 * 1024

/** A buffer that grew beyond this for one huge object is released. */
const KEEP_SIZE = 1024 * 1024

export class ByteQueue {
  bytes: Buffer = Buffer.allocUnsafe(0)
  /** The unused bytes are bytes[start..end). */
  start = 0
  end = 0

  get length(): number {
    return this.end - this.start
  }

  append(chunk: Buffer): void {
    const length = this.length
    if (length === 0) {
      this.start = this.end = 0
      if (this.bytes.length > KEEP_SIZE) this.bytes = Buffer.allocUnsafe(0)
    }
    if (length + chunk.length > this.bytes.length) {
      this.#moveTo(Buffer.allocUnsafe(Math.max(INITIAL_SIZE, (length + chunk.length) * 2)))
    } else if (this.end + chunk.length > this.bytes.length) {
      this.#moveTo(this.bytes)
    }
    chunk.copy(this.bytes, this.end)
    this.end += chunk.length
  }

  /** The position of the byte, at least `from` behind the start; -1: none. */
  indexOf(byte: number, from: number): number {
    const first = this.start + from
    const found = this.bytes.subarray(first, this.end).indexOf(byte)
    return found < 0 ? -1 : first + found
  }

  /** Everything before `position` has been used. */
  consumeTo(position: number): void {
    this.start = position
  }

  #moveTo(target: Buffer): void {
    this.bytes.copy(target, 0, this.start, this.end)
    this.bytes = target
    this.end -= this.start
    this.start = 0
  }
}
