// Addresses of sockets as the kernel lays them out: struct sockaddr_in and struct sockaddr_in6.

import { type Bytes, type Family, formatIp, parseIp, asBytes } from '../lib/ip.ts'

export const AF_INET = 2
export const AF_INET6 = 10

/** Large enough for both. */
export const ADDRESS_LENGTH = 28

/** Where the port is, in network byte order, and how long it is. */
export const PORT_AT = 2
export const PORT_LENGTH = 2
const IPV4_AT = 4
const IPV6_AT = 8

/** What identifies a client's host: its IPv4 address as a number, or the bytes of its IPv6 address. */
export type HostKey = number | Bytes

export function addressFamily(family: Family): number {
  return family === 4 ? AF_INET : AF_INET6
}

export function familyOf(address: Uint8Array): Family {
  return isIpv6(address) ? 6 : 4
}

/** Where the address of the host is, and how long it is. */
export function hostPlace(family: Family): { readonly at: number; readonly length: number } {
  return family === 4 ? { at: IPV4_AT, length: 4 } : { at: IPV6_AT, length: 16 }
}

export function setPort(address: Uint8Array, port: number): void {
  address[PORT_AT] = port >> 8
  address[PORT_AT + 1] = port & 255
}

export function encodeAddress(ip: string, port: number): Uint8Array {
  const bytes = parseIp(ip)
  if (bytes === undefined) throw new Error(`Cannot make an address of ${JSON.stringify(ip)}: it is not an IP address`)
  const isIpv4 = bytes.length === 4
  const address = new Uint8Array(isIpv4 ? 16 : 28)
  new Uint16Array(address.buffer, 0, 1)[0] = isIpv4 ? AF_INET : AF_INET6
  setPort(address, port)
  const at = isIpv4 ? IPV4_AT : IPV6_AT
  for (let i = 0; i < bytes.length; i++) address[at + i] = bytes.charCodeAt(i)
  return address
}

export function decodeAddress(address: Uint8Array): { readonly ip: string; readonly port: number } {
  return { ip: formatIp(hostBytes(address)), port: portOf(address) }
}

export function hostKey(address: Uint8Array): HostKey {
  return isIpv6(address) ? hostBytes(address) : ipv4Number(address)
}

/** What identifies a client: host and port. */
export function clientKey(address: Uint8Array): number | string {
  const port = portOf(address)
  return isIpv6(address) ? `${hostBytes(address)}${port}` : ipv4Number(address) * 65536 + port
}

/** Whether two addresses are of the same host. */
export function isSameHost(one: Uint8Array, other: Uint8Array): boolean {
  const [first, last] = isIpv6(one) ? [IPV6_AT, IPV6_AT + 16] : [IPV4_AT, IPV4_AT + 4]
  for (let i = first; i < last; i++) if (one[i] !== other[i]) return false
  return true
}

export function portOf(address: Uint8Array): number {
  return (address[PORT_AT]! << 8) | address[PORT_AT + 1]!
}

function isIpv6(address: Uint8Array): boolean {
  return (address[0]! | address[1]!) === AF_INET6
}

function ipv4Number(address: Uint8Array): number {
  return address[4]! * 0x1000000 + ((address[5]! << 16) | (address[6]! << 8) | address[7]!)
}

export function hostBytes(address: Uint8Array): Bytes {
  const [at, length] = isIpv6(address) ? [IPV6_AT, 16] : [IPV4_AT, 4]
  let bytes = ''
  for (let i = at; i < at + length; i++) bytes += String.fromCharCode(address[i]!)
  return asBytes(bytes)
}
