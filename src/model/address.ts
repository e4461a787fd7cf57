// Addresses of API objects, on their way into the model.

import { formatIp, parseIp } from '../lib/ip.ts'
import type { Bytes, Family } from '../lib/ip.ts'

export interface Address {
  readonly bytes: Bytes
  /** Canonical. */
  readonly text: string
}

/** Undefined when the text is no address of any family. */
export function parseAddress(text: string): Address | undefined {
  const bytes = parseIp(text)
  if (bytes === undefined) return undefined
  // Without leading zeros an IPv4 address has one spelling: most addresses need no formatting.
  if (bytes.length === 4 && !/:|\b0\d/.test(text)) return { bytes, text }
  const canonical = formatIp(bytes)
  // The given string is flat in memory, a formatted one is a tree of pieces.
  return { bytes, text: canonical === text ? text : canonical }
}

export function isOfFamily(bytes: Bytes, family: Family): boolean {
  return bytes.length === (family === 4 ? 4 : 16)
}

/** Compares bytes, for sorting. */
export function compareBytes(a: Bytes, b: Bytes): number {
  return a < b ? -1 : a > b ? 1 : 0
}
