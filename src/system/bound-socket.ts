// Sockets for Node, as file descriptors: they are in the network namespace in which they were opened.

import { KernelError } from '../lib/errors.ts'
import { lastErrno, mustCall, tryCall } from './libc.ts'
import { AF_INET, AF_INET6, encodeAddress } from './socket-address.ts'

const SOCK_STREAM = 1
const SOCK_DGRAM = 2
const SOCK_NONBLOCK_CLOEXEC = 0o4000 | 0o2000000
const SOL_SOCKET = 1
const SO_REUSEADDR = 2
const IPPROTO_IPV6 = 41
const IPV6_V6ONLY = 26

export type Transport = 'tcp' | 'udp'

/** Bound to the port on all addresses of both families, or on one address. */
export function openBound(transport: Transport, port: number, address?: string): number {
  const only = address === undefined ? undefined : address.includes(':') ? AF_INET6 : AF_INET
  const { fd, family } = openSocket(transport, only)
  try {
    setFlag(fd, SOL_SOCKET, SO_REUSEADDR, 1)
    if (family === AF_INET6) setFlag(fd, IPPROTO_IPV6, IPV6_V6ONLY, address === undefined ? 0 : 1)
    const sockaddr = encodeAddress(address ?? (family === AF_INET ? '0.0.0.0' : '::'), port)
    mustCall(`bind a socket to ${transport} port ${port}`, 'bind', fd, sockaddr, sockaddr.length)
    return fd
  } catch (error) {
    tryCall('close', fd)
    throw error
  }
}

/** Of both families where the kernel has IPv6, unless the family is given. */
export function openSocket(transport: Transport, only?: number): { fd: number; family: number } {
  const type = (transport === 'tcp' ? SOCK_STREAM : SOCK_DGRAM) | SOCK_NONBLOCK_CLOEXEC
  for (const family of only === undefined ? [AF_INET6, AF_INET] : [only]) {
    const fd = tryCall('socket', family, type, 0)
    if (fd !== -1) return { fd, family }
  }
  throw new KernelError(`open a ${transport} socket`, lastErrno())
}

function setFlag(fd: number, level: number, name: number, value: 0 | 1): void {
  mustCall('set up a socket', 'setsockopt', fd, level, name, Int32Array.of(value), 4)
}
