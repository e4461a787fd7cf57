// What a packet that the kernel logged says: which attempt to connect has failed, and how.

import { type Bytes, type Family, formatIp } from '../lib/ip.ts'

/** An address and a port. The address is a canonical text. */
export interface Place {
  readonly ip: string
  readonly port: number
}

export type Failure =
  /** The backend answered with a reset. */
  | { readonly kind: 'refused'; readonly family: Family; readonly backend: Place }
  /** The client sends its SYN again. Only the connection tracker knows to which backend. */
  | { readonly kind: 'silent'; readonly family: Family; readonly client: Place; readonly dialled: Place }
  /** An ICMP error. `sender` is who the backend would have answered. */
  | { readonly kind: 'unreachable'; readonly family: Family; readonly backend: Place; readonly sender: Place }

export type FailureKind = Failure['kind']

const TCP = 6
const ICMP = 1
const ICMPV6 = 58
const SYN = 0x02
const RST = 0x04
const FLAGS_AT = 13
const PORTS_LENGTH = 4
const ICMP_HEADER = 8

/** Undefined: not a packet that our rules log, or one of which too little is there. */
export function decodeFailure(packet: Bytes): Failure | undefined {
  const outer = decodeHeader(packet, 0)
  if (outer === undefined) return undefined
  const { family, protocol, source, destination, end } = outer
  if (protocol === (family === 4 ? ICMP : ICMPV6)) return decodeUnreachable(packet, end + ICMP_HEADER)
  if (protocol !== TCP || packet.length <= end + FLAGS_AT) return undefined
  const from = { ip: source, port: decodePort(packet, end) }
  const flags = packet.charCodeAt(end + FLAGS_AT)
  if ((flags & RST) !== 0) return { kind: 'refused', family, backend: from }
  if ((flags & SYN) === 0) return undefined
  return { kind: 'silent', family, client: from, dialled: { ip: destination, port: decodePort(packet, end + 2) } }
}

/** The error quotes the packet that could not be delivered: from the client, or this node in its place, to the backend. */
function decodeUnreachable(packet: Bytes, start: number): Failure | undefined {
  const quoted = decodeHeader(packet, start)
  if (quoted === undefined || quoted.protocol !== TCP || packet.length < quoted.end + PORTS_LENGTH) return undefined
  const { family, source, destination, end } = quoted
  return {
    kind: 'unreachable',
    family,
    backend: { ip: destination, port: decodePort(packet, end + 2) },
    sender: { ip: source, port: decodePort(packet, end) },
  }
}

interface Header {
  readonly family: Family
  readonly protocol: number
  readonly source: string
  readonly destination: string
  /** Where the transport header begins. IPv6 extension headers are none of ours. */
  readonly end: number
}

function decodeHeader(packet: Bytes, start: number): Header | undefined {
  const version = packet.charCodeAt(start) >> 4
  if (version === 4 && packet.length >= start + 20) {
    return {
      family: 4,
      protocol: packet.charCodeAt(start + 9),
      source: formatIp(packet.slice(start + 12, start + 16)),
      destination: formatIp(packet.slice(start + 16, start + 20)),
      end: start + (packet.charCodeAt(start) & 0xf) * 4,
    }
  }
  if (version !== 6 || packet.length < start + 40) return undefined
  return {
    family: 6,
    protocol: packet.charCodeAt(start + 6),
    source: formatIp(packet.slice(start + 8, start + 24)),
    destination: formatIp(packet.slice(start + 24, start + 40)),
    end: start + 40,
  }
}

function decodePort(packet: Bytes, at: number): number {
  return (packet.charCodeAt(at) << 8) | packet.charCodeAt(at + 1)
}
