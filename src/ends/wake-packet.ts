// The packet that makes an idle side of a connection answer: it names what that side believes its peer to be, and is out of every
// window, so that TCP answers with the sequence numbers that it has (a challenge ACK, RFC 5961).

import { type Bytes, type Family, ipBytes } from '../lib/ip.ts'
import type { FlowTuple } from '../conntrack/driver.ts'

const TCP = 6
const TCP_HEADER = 20
const IPV4_HEADER = 20
const IPV6_HEADER = 40
const HOPS = 64
/** The connection tracker takes these for a part of the connection, each in its own direction, and lets nothing follow from them. */
const FLAGS = { request: 0x02, answer: 0x12 } as const

/** A SYN in the direction in which the connection began, a SYN-ACK in the other. Their number is 0. */
export function encodeWakePacket(
  family: Family,
  { src, dst, sport, dport }: FlowTuple,
  direction: 'request' | 'answer',
): Uint8Array {
  const at = family === 4 ? IPV4_HEADER : IPV6_HEADER
  const packet = new Uint8Array(at + TCP_HEADER)
  const view = new DataView(packet.buffer)
  const [source, destination] = [ipBytes(src), ipBytes(dst)]
  if (family === 4) writeIpv4(view, source, destination)
  else writeIpv6(view, source, destination)
  view.setUint16(at, sport)
  view.setUint16(at + 2, dport)
  view.setUint8(at + 12, (TCP_HEADER / 4) << 4)
  view.setUint8(at + 13, FLAGS[direction])
  view.setUint16(at + 14, 1024)
  const addresses = family === 4 ? packet.subarray(12, IPV4_HEADER) : packet.subarray(8, IPV6_HEADER)
  view.setUint16(at + 16, ~fold(sumOf(addresses) + TCP + TCP_HEADER + sumOf(packet.subarray(at))) & 0xffff)
  return packet
}

/** The kernel fills in the checksum and the identification. */
function writeIpv4(view: DataView, source: Bytes, destination: Bytes): void {
  view.setUint8(0, 0x45)
  view.setUint16(2, IPV4_HEADER + TCP_HEADER)
  view.setUint8(8, HOPS)
  view.setUint8(9, TCP)
  writeBytes(view, 12, source + destination)
}

function writeIpv6(view: DataView, source: Bytes, destination: Bytes): void {
  view.setUint8(0, 0x60)
  view.setUint16(4, TCP_HEADER)
  view.setUint8(6, TCP)
  view.setUint8(7, HOPS)
  writeBytes(view, 8, source + destination)
}

function writeBytes(view: DataView, at: number, bytes: string): void {
  for (let i = 0; i < bytes.length; i++) view.setUint8(at + i, bytes.charCodeAt(i))
}

function sumOf(bytes: Uint8Array): number {
  let sum = 0
  for (let i = 0; i < bytes.length; i += 2) sum += (bytes[i]! << 8) | bytes[i + 1]!
  return sum
}

function fold(sum: number): number {
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16)
  return sum
}
