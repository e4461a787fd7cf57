// Names made of hashes, as kube-proxy makes them, so that operators find what they know.

import { sha256Words } from './sha256.ts'

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** The first `length` characters of the base32 text of the SHA-256 of `text`. */
export function base32Sha256(text: string, length: number): string {
  const words = sha256Words(text)
  let out = ''
  for (let bit = 0; out.length < length; bit += 5) {
    const at = bit >> 5
    const offset = bit & 31
    // Five bits that may lie across two words.
    const high = (words[at]! << offset) >>> 27
    const low = offset > 27 ? words[at + 1]! >>> (59 - offset) : 0
    out += BASE32[high | low]
  }
  return out
}

/** The most characters that hashedName() returns; leaves room for a prefix within the kernel's 255. */
export const HASHED_NAME_MAX = 238

/**
 * `HASH-name`: unique because of the hash, readable because of the name. Characters that nft does not allow in names
 * become `_`, and what is too long ends in `...`.
 */
export function hashedName(name: string): string {
  const full = `${base32Sha256(name, 8)}-${name.replace(/[^A-Za-z0-9_./-]/g, '_')}`
  return full.length > HASHED_NAME_MAX ? `${full.slice(0, HASHED_NAME_MAX - 3)}...` : full
}
