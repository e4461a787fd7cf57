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
} as const

const CLONE_NEWNET = 0x40000000
const AF_INET = 2
const AF_INET6 = 10
const SOCK_NONBLOCK_CLOEXEC = 0o4000 | 0o2000000
/** Level and option that allow binding to any address of a local route. */
const FREEBIND = { 4: [0, 15], 6: [41, 78] } as const
const REUSEADDR = [1, 2] as const

export const socketTypes = { tcp: 1, udp: 2 } as const

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
  return check('socket', calls.socket(domain, socketTypes[type] | SOCK_NONBLOCK_CLOEXEC, 0) as number)
}

/** Binds a socket to an address of its namespace, also one that only a local route knows. `address` is in network order. */
export function bindSocket(fd: number, address: Uint8Array, port: number): void {
  const family = address.length === 4 ? 4 : 6
  for (const [level, option] of [FREEBIND[family], REUSEADDR]) {
    check('setsockopt', calls.setsockopt(fd, level, option, [1], 4) as number)
  }
  const sockaddr = new Uint8Array(family === 4 ? 16 : 28)
  const view = new DataView(sockaddr.buffer)
  view.setUint16(0, family === 4 ? AF_INET : AF_INET6, true)
  view.setUint16(2, port)
  sockaddr.set(address, family === 4 ? 4 : 8)
  check('bind', calls.bind(fd, sockaddr, sockaddr.length) as number)
}

function check(op: string, result: number): number {
  if (result >= 0) return result
  throw Object.assign(new Error(`Cannot ${op}: errno ${koffi.errno()}`), { errno: koffi.errno() })
}
