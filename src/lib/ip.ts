// IP addresses and CIDRs as the kernel wants them: bytes.
//
// Addresses travel through the program as canonical strings ("10.0.0.1", "fd00::1") and become bytes when they
// are written to the kernel. Bytes are held as latin1 strings, one character per byte: such a string is a Map key,
// compares with ===, and costs a third of a Uint8Array.

import { placeOf } from './sorted-list.ts'

/** The IP family of an address, a proxier, or a table. */
export type Family = 4 | 6

declare const isBytes: unique symbol

/** Bytes, one character each (0..255). See the note on top of this file. Text is not assignable to it: that takes asBytes(). */
export type Bytes = {
  readonly [isBytes]: true
  slice(start?: number, end?: number): Bytes
  padEnd(length: number, fill: string): Bytes
} & string

/** Declares a string to be bytes: every character has to be one. */
export function asBytes(characters: string): Bytes {
  return characters as Bytes
}

export const bytesOf = String.fromCharCode as (...values: readonly number[]) => Bytes

/** A range of addresses: `10.0.0.0/8`, with its host bits cleared. */
export interface Cidr {
  readonly family: Family
  readonly network: Bytes
  readonly prefix: number
}

/**
 * Parses an IPv4 or IPv6 address; undefined when it is none. As Go's ParseIPSloppy, leading zeros in IPv4 parts are
 * accepted and read as decimal, and IPv4-mapped IPv6 addresses are IPv4 addresses.
 */
export function parseIp(text: string): Bytes | undefined {
  return text.includes(':') ? parseIpv6(text) : parseIpv4(text)
}

/** The bytes of a text that must be an address. */
export function ipBytes(text: string): Bytes {
  const bytes = parseIp(text)
  if (bytes === undefined) throw new TypeError(`Cannot use ${JSON.stringify(text)}: not an IP address`)
  return bytes
}

/** The family of an address string, or undefined when it is not an address. */
export function ipFamily(text: string): Family | undefined {
  const bytes = parseIp(text)
  return bytes === undefined ? undefined : familyOf(bytes)
}

/** The family of address bytes. */
export function familyOf(bytes: Bytes): Family {
  return bytes.length === 4 ? 4 : 6
}

/** The canonical text of an address (RFC 5952 for IPv6). */
export function formatIp(bytes: Bytes): string {
  if (bytes.length === 4) {
    return `${bytes.charCodeAt(0)}.${bytes.charCodeAt(1)}.${bytes.charCodeAt(2)}.${bytes.charCodeAt(3)}`
  }
  return formatIpv6(bytes)
}

/** The canonical text of an address, or undefined when it is none. */
export function canonicalIp(text: string): string | undefined {
  const bytes = parseIp(text)
  return bytes === undefined ? undefined : formatIp(bytes)
}

/** Parses `address/prefix`, clearing host bits; undefined when it is not a CIDR. */
export function parseCidr(text: string): Cidr | undefined {
  const slash = text.indexOf('/')
  if (slash < 0) return undefined
  const bytes = parseIp(text.slice(0, slash))
  const prefixText = text.slice(slash + 1)
  if (bytes === undefined || !/^\d{1,3}$/.test(prefixText)) return undefined
  const prefix = Number(prefixText)
  if (prefix > bytes.length * 8) return undefined
  return { family: familyOf(bytes), network: maskBytes(bytes, prefix), prefix }
}

/** The text of a CIDR. */
export function formatCidr(cidr: Cidr): string {
  return `${formatIp(cidr.network)}/${cidr.prefix}`
}

/** Whether the range contains the address. */
export function cidrContains(cidr: Cidr, address: Bytes): boolean {
  return address.length === cidr.network.length && maskBytes(address, cidr.prefix) === cidr.network
}

/** The last address of a range. */
export function cidrEnd(cidr: Cidr): Bytes {
  const mask = prefixMask(cidr.prefix, cidr.network.length)
  let end = ''
  for (let i = 0; i < mask.length; i++) {
    end += String.fromCharCode(cidr.network.charCodeAt(i) | (~mask.charCodeAt(i) & 0xff))
  }
  return asBytes(end)
}

/**
 * The fewest ranges that say the same, in order: without those that another contains, and one instead of two that are its halves.
 * (Two CIDRs overlap only when one contains the other.)
 */
export function mergeCidrs(cidrs: readonly Cidr[]): Cidr[] {
  const kept: Cidr[] = []
  // A range that contains others comes right before them: only the last that was kept can contain the next.
  for (const cidr of [...cidrs].sort(compareCidrs)) {
    const last = kept.at(-1)
    if (last === undefined || !cidrContains(last, cidr.network)) keepJoined(kept, cidr)
  }
  return kept
}

/** Two halves become a whole, which may be the second half of another. "Everything" is never made of ranges: callers know it as none. */
function keepJoined(kept: Cidr[], cidr: Cidr): void {
  let { prefix } = cidr
  let { network } = cidr
  for (let last = kept.at(-1); last?.prefix === prefix && prefix > 1; last = kept.at(-1)) {
    if (last.network.length !== network.length || maskBytes(network, prefix - 1) !== last.network) break
    kept.pop()
    network = last.network
    prefix--
  }
  kept.push(prefix === cidr.prefix ? cidr : { family: cidr.family, network, prefix })
}

/** Whether one of the ranges contains the address. They are of its family, and such as mergeCidrs() makes them. */
export function mergedContain(merged: readonly Cidr[], address: Bytes): boolean {
  // The last that begins at the address or before it is the only one that can.
  const range = merged[placeOf(merged, address, ({ network }, wanted) => (network <= wanted ? -1 : 1)) - 1]
  return range !== undefined && cidrContains(range, address)
}

/** By family, by network, then the wider first. */
export function compareCidrs(a: Cidr, b: Cidr): number {
  if (a.family !== b.family) return a.family - b.family
  if (a.network !== b.network) return a.network < b.network ? -1 : 1
  return a.prefix - b.prefix
}

/** The netmask of a prefix, as bytes. */
export function prefixMask(prefix: number, length: number): Bytes {
  let mask = ''
  for (let i = 0; i < length; i++) {
    const bits = Math.max(0, Math.min(8, prefix - i * 8))
    mask += String.fromCharCode((0xff << (8 - bits)) & 0xff)
  }
  return asBytes(mask)
}

/** Whether the address is in 127.0.0.0/8 or is ::1. */
/** An IPv4 address comes mapped into IPv6 from a socket of both families. */
export function plainAddress(address: string | undefined): string {
  return (address ?? '').replace(/^::ffff:/, '')
}

export function isLoopback(bytes: Bytes): boolean {
  return bytes.length === 4 ? bytes.charCodeAt(0) === 127 : bytes === IPV6_LOOPBACK
}

/** Whether the address is link-local (169.254.0.0/16, fe80::/10). */
export function isLinkLocal(bytes: Bytes): boolean {
  return bytes.length === 4
    ? bytes.charCodeAt(0) === 169 && bytes.charCodeAt(1) === 254
    : bytes.charCodeAt(0) === 0xfe && (bytes.charCodeAt(1) & 0xc0) === 0x80
}

/** Whether the address is multicast within one link (224.0.0.0/24, ff?2::/16). */
export function isLinkLocalMulticast(bytes: Bytes): boolean {
  return bytes.length === 4
    ? bytes.charCodeAt(0) === 224 && bytes.charCodeAt(1) === 0 && bytes.charCodeAt(2) === 0
    : bytes.charCodeAt(0) === 0xff && (bytes.charCodeAt(1) & 0x0f) === 2
}

/** Whether the address is 0.0.0.0 or ::. */
export function isUnspecified(bytes: Bytes): boolean {
  return bytes === (bytes.length === 4 ? IPV4_UNSPECIFIED : IPV6_UNSPECIFIED)
}

/** `10.0.0.1:80` or `[fd00::1]:80`. */
export function joinHostPort(ip: string, port: number): string {
  return ip.includes(':') ? `[${ip}]:${port}` : `${ip}:${port}`
}

const IPV4_UNSPECIFIED = '\0'.repeat(4)
const IPV6_UNSPECIFIED = '\0'.repeat(16)
const IPV6_LOOPBACK = '\0'.repeat(15) + '\x01'
const IPV4_MAPPED = '\0'.repeat(10) + '\xff\xff'

function parseIpv4(text: string): Bytes | undefined {
  let address = 0
  let value = 0
  let digits = 0
  let parts = 0
  for (let i = 0; i <= text.length; i++) {
    const c = i < text.length ? text.charCodeAt(i) : 46
    if (c === 46) {
      if (digits === 0 || ++parts > 4) return undefined
      address = address * 256 + value
      value = digits = 0
    } else if (c >= 48 && c <= 57) {
      value = value * 10 + (c - 48)
      if (++digits > 8 || value > 255) return undefined
    } else {
      return undefined
    }
  }
  if (parts !== 4) return undefined
  return bytesOf(address >>> 24, (address >>> 16) & 0xff, (address >>> 8) & 0xff, address & 0xff)
}

function parseIpv6(text: string): Bytes | undefined {
  const gap = text.indexOf('::')
  if (gap !== text.lastIndexOf('::')) return undefined
  const head = parseGroups(gap < 0 ? text : text.slice(0, gap), gap < 0)
  const tail = gap < 0 ? '' : parseGroups(text.slice(gap + 2), true)
  if (head === undefined || tail === undefined) return undefined
  const length = head.length + tail.length
  if (gap < 0 ? length !== 16 : length > 14) return undefined
  // join() makes one flat string of the pieces: addresses are kept.
  const bytes = [head, '\0'.repeat(16 - length), tail].join('')
  return bytes.startsWith(IPV4_MAPPED) ? asBytes(bytes.slice(12)) : asBytes(bytes)
}

/** Colon-separated groups of hex digits; the last may be an IPv4 address when `last` says that the address ends here. */
function parseGroups(text: string, last: boolean): Bytes | undefined {
  if (text === '') return asBytes('')
  const groups = text.split(':')
  let bytes = ''
  for (const [i, group] of groups.entries()) {
    if (/^[0-9a-fA-F]{1,4}$/.test(group)) {
      const value = parseInt(group, 16)
      bytes += String.fromCharCode(value >> 8, value & 0xff)
    } else if (last && i === groups.length - 1) {
      const ipv4 = parseIpv4(group)
      if (ipv4 === undefined) return undefined
      bytes += ipv4
    } else {
      return undefined
    }
  }
  return asBytes(bytes)
}

function formatIpv6(bytes: Bytes): string {
  const groups: number[] = []
  for (let i = 0; i < 16; i += 2) groups.push((bytes.charCodeAt(i) << 8) | bytes.charCodeAt(i + 1))
  const zeros = longestZeroRun(groups)
  const hex = (list: number[]) => list.map((g) => g.toString(16)).join(':')
  if (zeros.length < 2) return hex(groups)
  return `${hex(groups.slice(0, zeros.start))}::${hex(groups.slice(zeros.start + zeros.length))}`
}

function longestZeroRun(groups: readonly number[]): { start: number; length: number } {
  let best = { start: 0, length: 0 }
  let start = -1
  for (let i = 0; i <= groups.length; i++) {
    if (groups[i] === 0) {
      if (start < 0) start = i
    } else if (start >= 0) {
      if (i - start > best.length) best = { start, length: i - start }
      start = -1
    }
  }
  return best
}

/** The address with the bits behind the prefix cleared. */
export function maskBytes(bytes: Bytes, prefix: number): Bytes {
  const whole = prefix >> 3
  if (whole >= bytes.length) return bytes
  const partial = bytes.charCodeAt(whole) & (0xff << (8 - (prefix & 7))) & 0xff
  return asBytes(bytes.slice(0, whole) + String.fromCharCode(partial) + '\0'.repeat(bytes.length - whole - 1))
}

/** Takes apart what joinHostPort() joined. */
export function splitHostPort(text: string): { readonly ip: string; readonly port: number } {
  const colon = text.lastIndexOf(':')
  return { ip: text.slice(0, colon).replace(/^\[|\]$/g, ''), port: Number(text.slice(colon + 1)) }
}
