// The kernel's jhash (include/linux/jhash.h), as a machine with the byte order of x86 and arm64 computes it.

const START = 0xdeadbeef

export function jhash(key: string, seed: number): number {
  let a = (START + key.length + seed) | 0
  let b = a
  let c = a
  let at = 0
  let left = key.length
  for (; left > 12; at += 12, left -= 12) {
    a = (a + word(key, at)) | 0
    b = (b + word(key, at + 4)) | 0
    c = (c + word(key, at + 8)) | 0
    a = ((a - c) ^ rotate(c, 4)) | 0
    c = (c + b) | 0
    b = ((b - a) ^ rotate(a, 6)) | 0
    a = (a + c) | 0
    c = ((c - b) ^ rotate(b, 8)) | 0
    b = (b + a) | 0
    a = ((a - c) ^ rotate(c, 16)) | 0
    c = (c + b) | 0
    b = ((b - a) ^ rotate(a, 19)) | 0
    a = (a + c) | 0
    c = ((c - b) ^ rotate(b, 4)) | 0
    b = (b + a) | 0
  }
  if (left === 0) return c >>> 0
  a = (a + word(key, at)) | 0
  b = (b + word(key, at + 4)) | 0
  c = (c + word(key, at + 8)) | 0
  c = ((c ^ b) - rotate(b, 14)) | 0
  a = ((a ^ c) - rotate(c, 11)) | 0
  b = ((b ^ a) - rotate(a, 25)) | 0
  c = ((c ^ b) - rotate(b, 16)) | 0
  a = ((a ^ c) - rotate(c, 4)) | 0
  b = ((b ^ a) - rotate(a, 14)) | 0
  c = ((c ^ b) - rotate(b, 24)) | 0
  return c >>> 0
}

/** A number below `modulus`, as the kernel makes one of a hash: reciprocal_scale(). */
export function scaleHash(hash: number, modulus: number): number {
  return Math.floor((hash * modulus) / 2 ** 32)
}

/** Four bytes; behind the end there are zeros. */
function word(key: string, at: number): number {
  // charCodeAt() is NaN behind the end, which shifts as 0.
  return (
    key.charCodeAt(at) |
    0 |
    (key.charCodeAt(at + 1) << 8) |
    (key.charCodeAt(at + 2) << 16) |
    (key.charCodeAt(at + 3) << 24)
  )
}

function rotate(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits))
}
