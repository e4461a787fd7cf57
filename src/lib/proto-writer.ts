// A writer of the protobuf wire format that fills its buffer from the end. A message's length then is known when it is
// written, in front of it, and nothing is measured or moved.

export const VARINT = 0
export const FIXED64 = 1
export const LENGTH_DELIMITED = 2

export class ProtoWriter {
  #buffer: Buffer
  #start: number

  constructor(size: number = 1024) {
    this.#buffer = Buffer.allocUnsafe(size)
    this.#start = size
  }

  /** How much has been written. Take it before a message's fields; pass it to `message` after them. */
  get length(): number {
    return this.#buffer.length - this.#start
  }

  /** What was written, as bytes of its own. */
  finish(): Buffer {
    return Buffer.from(this.#buffer.subarray(this.#start))
  }

  reset(): void {
    this.#start = this.#buffer.length
  }

  tag(field: number, wireType: number): void {
    this.varint(field * 8 + wireType)
  }

  /** Puts tag and length in front of everything written since the length was `since`. */
  message(field: number, since: number): void {
    this.varint(this.length - since)
    this.tag(field, LENGTH_DELIMITED)
  }

  string(field: number, value: string): void {
    const size = Buffer.byteLength(value)
    this.#room(size)
    this.#start -= size
    this.#buffer.write(value, this.#start, size === value.length ? 'latin1' : 'utf8')
    this.varint(size)
    this.tag(field, LENGTH_DELIMITED)
  }

  bytes(field: number, value: Uint8Array): void {
    this.raw(value)
    this.varint(value.length)
    this.tag(field, LENGTH_DELIMITED)
  }

  raw(value: Uint8Array): void {
    this.#room(value.length)
    this.#start -= value.length
    this.#buffer.set(value, this.#start)
  }

  /** int32, int64 or bool. */
  int(field: number, value: number): void {
    this.varint(value)
    this.tag(field, VARINT)
  }

  double(field: number, value: number): void {
    this.#room(8)
    this.#start -= 8
    this.#buffer.writeDoubleLE(value, this.#start)
    this.tag(field, FIXED64)
  }

  varint(value: number): void {
    if (value >= 0 && value < 0x80) {
      this.#room(1)
      this.#buffer[--this.#start] = value
      return
    }
    const groups = value < 0 || value > 0x7fffffff ? bigGroups(value) : smallGroups(value)
    this.#room(groups.length)
    this.#start -= groups.length
    for (let i = 0; i < groups.length; i++)
      this.#buffer[this.#start + i] = groups[i]! | (i < groups.length - 1 ? 0x80 : 0)
  }

  #room(size: number): void {
    if (this.#start >= size) return
    const grown = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, this.length + size + 1024))
    const start = grown.length - this.length
    this.#buffer.copy(grown, start, this.#start)
    this.#buffer = grown
    this.#start = start
  }
}

function smallGroups(value: number): number[] {
  const groups: number[] = []
  for (let rest = value; rest > 0; rest >>>= 7) groups.push(rest & 0x7f)
  return groups
}

/** Negative numbers are written as 64-bit two's complement, large ones exactly. */
function bigGroups(value: number): number[] {
  const groups: number[] = []
  for (let rest = BigInt.asUintN(64, BigInt(value)); rest > 0n; rest >>= 7n) groups.push(Number(rest & 0x7fn))
  return groups
}
