// Packets that no TCP would send: their sender may be anybody. Over IPv4, whose headers a raw socket takes as they are.

import { closeSync } from 'node:fs'
import { mustCall } from '../../../src/system/libc.ts'
import { sendPacket, type SocketAddress } from './sockets.ts'
import type { Netns } from './netns.ts'

const AF_INET = 2
const SOCK_RAW_CLOEXEC = 3 | 0o2000000
const IPPROTO_RAW = 255
const IPPROTO_ICMP = 1
const IPPROTO_TCP = 6
const SYN = 0x02
const RST = 0x04
const ACK = 0x10
const DESTINATION_UNREACHABLE = 3
const HOST_UNREACHABLE = 1
/** A signature (RFC 2385), which a server that asked for none ignores with its packet; no-operation twice to fill up. */
const SIGNATURE = [19, 18, ...Array.from({ length: 16 }, () => 0), 1, 1]

export class Forger implements Disposable {
  readonly #fd: number

  constructor(netns: Netns) {
    this.#fd = netns.enter(() => mustCall('open a raw socket', 'socket', AF_INET, SOCK_RAW_CLOEXEC, IPPROTO_RAW))
  }

  /** One that a healthy server hears and does not answer: so that it can be sent again before there is an answer. */
  syn(from: SocketAddress, to: SocketAddress): void {
    this.#send(synPacket(from, to), to)
  }

  /** What a kernel without a server answers. */
  refusal(from: SocketAddress, to: SocketAddress): void {
    this.#send(packetOf(from, to, IPPROTO_TCP, tcpSegment(from, to, { flags: RST | ACK, sequence: 0, ack: 1001 })), to)
  }

  /** A router's word that a SYN could not be delivered. */
  unreachable(router: string, from: SocketAddress, to: SocketAddress): void {
    const head = Uint8Array.of(DESTINATION_UNREACHABLE, HOST_UNREACHABLE, 0, 0, 0, 0, 0, 0)
    const message = Uint8Array.from([...head, ...synPacket(from, to)])
    new DataView(message.buffer).setUint16(2, checksum(message))
    this.#send(packetOf({ ip: router, port: 0 }, from, IPPROTO_ICMP, message), from)
  }

  [Symbol.dispose](): void {
    closeSync(this.#fd)
  }

  #send(packet: Uint8Array, { ip }: SocketAddress): void {
    sendPacket(this.#fd, packet, { ip, port: 0 })
  }
}

function synPacket(from: SocketAddress, to: SocketAddress): Uint8Array {
  return packetOf(from, to, IPPROTO_TCP, tcpSegment(from, to, { flags: SYN, sequence: 1000, ack: 0 }))
}

function tcpSegment(
  from: SocketAddress,
  to: SocketAddress,
  { flags, sequence, ack }: Record<'flags' | 'sequence' | 'ack', number>,
): Uint8Array {
  const options = (flags & SYN) === 0 ? [] : SIGNATURE
  const segment = Uint8Array.from([...Array.from({ length: 20 }, () => 0), ...options])
  const view = new DataView(segment.buffer)
  view.setUint16(0, from.port)
  view.setUint16(2, to.port)
  view.setUint32(4, sequence)
  view.setUint32(8, ack)
  view.setUint8(12, (segment.length / 4) << 4)
  view.setUint8(13, flags)
  view.setUint16(14, 64_000)
  const pseudo = [...addressBytes(from.ip), ...addressBytes(to.ip), 0, IPPROTO_TCP, 0, segment.length]
  view.setUint16(16, checksum(Uint8Array.from([...pseudo, ...segment])))
  return segment
}

function packetOf(from: SocketAddress, to: SocketAddress, protocol: number, payload: Uint8Array): Uint8Array {
  const packet = new Uint8Array(20 + payload.length)
  const view = new DataView(packet.buffer)
  view.setUint8(0, 0x45)
  view.setUint16(2, packet.length)
  view.setUint8(8, 64)
  view.setUint8(9, protocol)
  packet.set(addressBytes(from.ip), 12)
  packet.set(addressBytes(to.ip), 16)
  view.setUint16(10, checksum(packet.subarray(0, 20)))
  packet.set(payload, 20)
  return packet
}

function addressBytes(ip: string): number[] {
  return ip.split('.').map(Number)
}

/** RFC 1071. */
function checksum(bytes: Uint8Array): number {
  let sum = 0
  for (const [i, byte] of bytes.entries()) sum += i % 2 === 0 ? byte << 8 : byte
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16)
  return ~sum & 0xffff
}
