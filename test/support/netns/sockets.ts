// Sockets of a namespace that only tests need: from addresses that no link has, and raw ones. The others are the sandbox's.

import { mustCall, lastErrno, tryCall } from '../../../src/system/libc.ts'
import { KernelError } from '../../../src/lib/errors.ts'
import {
  ADDRESS_LENGTH,
  addressFamily,
  decodeAddress,
  encodeAddress,
  familyOf,
} from '../../../src/system/socket-address.ts'
import { openClientSocket } from '../../../packages/sandbox/src/netns/sockets.ts'
import type { Netns } from './netns.ts'
import type { NetworkNamespace } from '../../../packages/sandbox/src/netns/network-namespace.ts'

const SOCK_RAW_NONBLOCK_CLOEXEC = 3 | 0o4000 | 0o2000000
const IPPROTO_SCTP = 132
/** Level and option that allow binding to any address of a local route. */
const FREEBIND = { 4: [0, 15], 6: [41, 78] } as const
const REUSEADDR = [1, 2] as const
const TCP_INFO = [6, 11] as const
/** Where struct tcp_info has tcpi_total_retrans. */
const totalRetransAt = 100

/** An address of a socket. */
export interface SocketAddress {
  readonly ip: string
  readonly port: number
}

/** A client's socket for connections to an address, from an address that the caller chooses, if it does. */
export function openClient(
  netns: Netns,
  transport: 'tcp' | 'udp',
  to: { readonly address: string },
  from: { readonly ip?: string | undefined; readonly port?: number | undefined } = {},
): number {
  const family = to.address.includes(':') ? 6 : 4
  const open = () => openClientSocket(netns, transport, family)
  // A socket belongs to the cgroup of the process that opens it.
  const fd = netns.clients === undefined ? open() : netns.clients.within(open)
  if (from.ip !== undefined || from.port !== undefined) {
    bindSocket(fd, { ip: from.ip ?? (family === 4 ? '0.0.0.0' : '::'), port: from.port ?? 0 })
  }
  return fd
}

/** Binds a socket to an address of its namespace, also one that only a local route knows. */
function bindSocket(fd: number, to: SocketAddress): void {
  const sockaddr = encodeAddress(to.ip, to.port)
  for (const [level, option] of [FREEBIND[familyOf(sockaddr)], REUSEADDR]) {
    mustCall('set up a socket', 'setsockopt', fd, level, option, Int32Array.of(1), 4)
  }
  mustCall(`bind to ${to.ip}`, 'bind', fd, sockaddr, sockaddr.length)
}

/** A socket for packets of SCTP, with or without SCTP in the kernel. */
export function openRawSctp(netns: NetworkNamespace, family: 4 | 6, address?: string): number {
  const fd = openRaw(netns, family, IPPROTO_SCTP)
  if (address === undefined) return fd
  const sockaddr = encodeAddress(address, 0)
  mustCall(`bind a raw socket to ${address}`, 'bind', fd, sockaddr, sockaddr.length)
  return fd
}

/** A socket for packets of a protocol. */
export function openRaw(netns: NetworkNamespace, family: 4 | 6, protocol: number): number {
  return netns.enter(() =>
    mustCall('open a raw socket', 'socket', addressFamily(family), SOCK_RAW_NONBLOCK_CLOEXEC, protocol),
  )
}

/** Connects a socket that waits for no answer. Returns its own address. */
export function connectSocket(fd: number, to: SocketAddress): SocketAddress {
  const sockaddr = encodeAddress(to.ip, to.port)
  mustCall(`connect to ${to.ip}`, 'connect', fd, sockaddr, sockaddr.length)
  const own = new Uint8Array(ADDRESS_LENGTH)
  mustCall('find the address of a socket', 'getsockname', fd, own, Uint32Array.of(own.length))
  return decodeAddress(own)
}

/** How many segments of a TCP connection the kernel had to send again. */
export function countResent(fd: number): number {
  const info = new Uint8Array(totalRetransAt + 4)
  mustCall('read the state of a connection', 'getsockopt', fd, ...TCP_INFO, info, Uint32Array.of(info.length))
  return new DataView(info.buffer).getUint32(totalRetransAt, true)
}

/** Sends a packet, to where the socket is connected when `to` is absent. */
export function sendPacket(fd: number, packet: Uint8Array, to?: SocketAddress): void {
  const sockaddr = to === undefined ? null : encodeAddress(to.ip, to.port)
  mustCall('send a packet', 'sendto', fd, packet, packet.length, 0, sockaddr, sockaddr?.length ?? 0)
}

/** The next packet that has arrived, and its sender; undefined when there is none. */
export function receivePacket(fd: number): { packet: Uint8Array; from: SocketAddress } | undefined {
  const packet = new Uint8Array(4096)
  const sender = new Uint8Array(ADDRESS_LENGTH)
  const length = tryCall('recvfrom', fd, packet, packet.length, 0, sender, Uint32Array.of(sender.length))
  if (length >= 0) return { packet: packet.subarray(0, length), from: decodeAddress(sender) }
  // Short of memory, the kernel gives a packet later, or has lost it: whoever waits for it asks again, until it is too late.
  if (['EAGAIN', 'ENOMEM'].includes(lastErrno())) return undefined
  throw new KernelError('receive a packet', lastErrno())
}
