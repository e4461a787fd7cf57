// The few system calls that Node does not offer. Only on Linux with glibc, as the tests themselves.

import { readlinkSync } from 'node:fs'
import koffi from 'koffi'

const libc = koffi.load('libc.so.6')
const calls = {
  unshare: libc.func('int unshare(int flags)'),
  setns: libc.func('int setns(int fd, int nstype)'),
  socket: libc.func('int socket(int domain, int type, int protocol)'),
  bind: libc.func('int bind(int fd, const uint8_t *address, uint32_t length)'),
  setsockopt: libc.func('int setsockopt(int fd, int level, int option, const int32_t *value, uint32_t length)'),
  getsockopt: libc.func('int getsockopt(int fd, int level, int option, uint8_t *value, uint32_t *length)'),
  connect: libc.func('int connect(int fd, const uint8_t *address, uint32_t length)'),
  getsockname: libc.func('int getsockname(int fd, uint8_t *address, uint32_t *length)'),
  sendto: libc.func(
    'int64_t sendto(int fd, const uint8_t *data, size_t size, int flags, const uint8_t *address, uint32_t length)',
  ),
  recvfrom: libc.func(
    'int64_t recvfrom(int fd, uint8_t *data, size_t size, int flags, uint8_t *address, uint32_t *length)',
  ),
} as const

const CLONE_NEWNET = 0x40000000
const AF_INET = 2
const AF_INET6 = 10
const SOCK_NONBLOCK_CLOEXEC = 0o4000 | 0o2000000
/** Level and option that allow binding to any address of a local route. */
const FREEBIND = { 4: [0, 15], 6: [41, 78] } as const
const REUSEADDR = [1, 2] as const

const TCP_INFO = [6, 11] as const
/** Where struct tcp_info has tcpi_total_retrans. */
const totalRetransAt = 100

const EAGAIN = 11
const IPPROTO_SCTP = 132

const socketTypes = { tcp: [1, 0], udp: [2, 0], rawSctp: [3, IPPROTO_SCTP] } as const

/** Moves the calling thread to a new, empty network namespace. */
export function unshareNetwork(): void {
  check('unshare', calls.unshare(CLONE_NEWNET) as number)
}

/** Moves the calling thread to the network namespace behind a file descriptor. */
export function enterNetwork(fd: number): void {
  check('setns', calls.setns(fd, CLONE_NEWNET) as number)
}

/** The network namespace that the calling thread is in, as a name to compare: `net:[4026531840]`. */
export function networkName(): string {
  return readlinkSync('/proc/thread-self/ns/net')
}

/** A socket of the namespace that the calling thread is in; it stays there wherever the thread goes. */
export function openSocket(type: keyof typeof socketTypes, family: 4 | 6): number {
  const domain = family === 4 ? AF_INET : AF_INET6
  const [kind, protocol] = socketTypes[type]
  return check('socket', calls.socket(domain, kind | SOCK_NONBLOCK_CLOEXEC, protocol) as number)
}

/** An address and a port, the address in network order. */
export interface SocketAddress {
  readonly address: Uint8Array
  readonly port: number
}

/** Binds a socket to an address of its namespace, also one that only a local route knows. */
export function bindSocket(fd: number, to: SocketAddress): void {
  for (const [level, option] of [FREEBIND[to.address.length === 4 ? 4 : 6], REUSEADDR]) {
    check('setsockopt', calls.setsockopt(fd, level, option, [1], 4) as number)
  }
  const sockaddr = encodeAddress(to)
  check('bind', calls.bind(fd, sockaddr, sockaddr.length) as number)
}

/** Connects a socket that does not wait for anybody to answer. Returns its own address. */
export function connectSocket(fd: number, to: SocketAddress): SocketAddress {
  const sockaddr = encodeAddress(to)
  check('connect', calls.connect(fd, sockaddr, sockaddr.length) as number)
  const own = new Uint8Array(28)
  check('getsockname', calls.getsockname(fd, own, new Uint32Array([own.length])) as number)
  return decodeAddress(own)
}

/** How many segments of a TCP connection the kernel had to send again. */
export function countResent(fd: number): number {
  const info = new Uint8Array(totalRetransAt + 4)
  check('getsockopt', calls.getsockopt(fd, ...TCP_INFO, info, new Uint32Array([info.length])) as number)
  return new DataView(info.buffer).getUint32(totalRetransAt, true)
}

/** Sends a packet, to where the socket is connected when `to` is absent. */
export function sendPacket(fd: number, packet: Uint8Array, to?: SocketAddress): void {
  const sockaddr = to === undefined ? null : encodeAddress(to)
  check('sendto', Number(calls.sendto(fd, packet, packet.length, 0, sockaddr, sockaddr?.length ?? 0)))
}

/** The next packet that has arrived, and who sent it; undefined when there is none. */
export function receivePacket(fd: number): { packet: Uint8Array; from: SocketAddress } | undefined {
  const packet = new Uint8Array(4096)
  const sender = new Uint8Array(28)
  const length = Number(calls.recvfrom(fd, packet, packet.length, 0, sender, new Uint32Array([sender.length])))
  if (length < 0 && koffi.errno() === EAGAIN) return undefined
  return { packet: packet.subarray(0, check('recvfrom', length)), from: decodeAddress(sender) }
}

function encodeAddress({ address, port }: SocketAddress): Uint8Array {
  const family = address.length === 4 ? 4 : 6
  const sockaddr = new Uint8Array(family === 4 ? 16 : 28)
  const view = new DataView(sockaddr.buffer)
  view.setUint16(0, family === 4 ? AF_INET : AF_INET6, true)
  view.setUint16(2, port)
  sockaddr.set(address, family === 4 ? 4 : 8)
  return sockaddr
}

function decodeAddress(sockaddr: Uint8Array): SocketAddress {
  const view = new DataView(sockaddr.buffer)
  const address = view.getUint16(0, true) === AF_INET ? sockaddr.slice(4, 8) : sockaddr.slice(8, 24)
  return { address, port: view.getUint16(2) }
}

function check(op: string, result: number): number {
  if (result >= 0) return result
  throw Object.assign(new Error(`Cannot ${op}: errno ${koffi.errno()}`), { errno: koffi.errno() })
}
