// Names made of hashes, as kube-proxy makes them, so that operators find what they know.

import { hash } from 'node:crypto'

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** The first `length` characters, at most 48, of the base32 text of the SHA-256 of `text`. */
export function base32Sha256(text: string, length: number): string {
  const hex = hash('sha256', text)
  let out = ''
  // Five hexadecimal digits are four characters.
  for (let at = 0; out.length < length; at += 5) {
    const bits = parseInt(hex.slice(at, at + 5), 16)
    out += BASE32[bits >> 15]! + BASE32[(bits >> 10) & 31]! + BASE32[(bits >> 5) & 31]! + BASE32[bits & 31]!
  }
  return out.slice(0, length)
}

/** The first 32 bits of the SHA-256 of `text`. */
export function sha256Word(text: string): number {
  return parseInt(hash('sha256', text).slice(0, 8), 16)
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
