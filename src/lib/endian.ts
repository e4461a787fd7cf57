// The byte order of this machine, for the few kernel values that are not in network order.

import { type Bytes, bytesOf } from './ip.ts'

/** Integers in the kernel's structures are in the byte order of the machine. */
export const LITTLE_ENDIAN: boolean = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1

/** A 16-bit number in this machine's byte order; a negative one as its two's complement. */
export function host16(value: number): Bytes {
  const [low, high] = [value & 0xff, (value >> 8) & 0xff]
  return LITTLE_ENDIAN ? bytesOf(low, high) : bytesOf(high, low)
}

/** A 32-bit number in this machine's byte order. */
export function host32(value: number): Bytes {
  return LITTLE_ENDIAN
    ? bytesOf(value & 0xff, (value >>> 8) & 0xff, (value >>> 16) & 0xff, value >>> 24)
    : bytesOf(value >>> 24, (value >>> 16) & 0xff, (value >>> 8) & 0xff, value & 0xff)
}

/** The inverse of host32. */
export function decodeHost32(bytes: Bytes): number {
  const at = (i: number) => bytes.charCodeAt(LITTLE_ENDIAN ? i : 3 - i)
  return (at(0) | (at(1) << 8) | (at(2) << 16) | (at(3) << 24)) >>> 0
}
