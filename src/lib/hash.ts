// Names made of hashes, as kube-proxy makes them, so that operators find what they know.

import { createHash } from 'node:crypto'

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** The first `length` characters of the base32 text of the SHA-256 of `text`. */
export function base32Sha256(text: string, length: number): string {
  const digest = createHash('sha256').update(text).digest()
  let out = ''
  for (let bit = 0; out.length < length; bit += 5) {
    const pair = (digest[bit >> 3]! << 8) | (digest[(bit >> 3) + 1] ?? 0)
    out += BASE32[(pair >> (11 - (bit & 7))) & 31]
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
