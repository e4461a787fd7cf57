// Sockets opened in another namespace, to be given to Node by their file descriptors.

import { Socket } from 'node:net'
import { KernelError } from '../../../../src/lib/errors.ts'
import { AF_INET, AF_INET6, decodeAddress, encodeAddress } from '../../../../src/system/socket-address.ts'
import { lastErrno, mustCall, tryCall } from '../../../../src/system/libc.ts'
import type { NetworkNamespace } from './network-namespace.ts'

const SOCK_STREAM = 1
const SOCK_DGRAM = 2
const SOCK_NONBLOCK_CLOEXEC = 0o4000 | 0o2000000
const SOL_SOCKET = 1
const SO_REUSEADDR = 2
const IPPROTO_IPV6 = 41
const IPV6_V6ONLY = 26

const CONNECT_TIMEOUT_MS = 500

export type Transport = 'tcp' | 'udp'

/** A socket of the namespace, bound to the port on all addresses of both families, or on one address. */
export function openBoundSocket(netns: NetworkNamespace, transport: Transport, port: number, address?: string): number {
  const only = address === undefined ? undefined : familyOf(address)
  const { fd, family } = netns.enter(() => openSocket(transport, only))
  const where = `${transport} port ${port} in ${netns.name}`
  try {
    setFlag(fd, SOL_SOCKET, SO_REUSEADDR, 1)
    if (family === AF_INET6) setFlag(fd, IPPROTO_IPV6, IPV6_V6ONLY, address === undefined ? 0 : 1)
    const sockaddr = encodeAddress(address ?? (family === AF_INET ? '0.0.0.0' : '::'), port)
    mustCall(`listen on ${where}`, 'bind', fd, sockaddr, sockaddr.length)
    return fd
  } catch (error) {
    tryCall('close', fd)
    throw error
  }
}

/** A socket on 127.0.0.1 of the namespace that we are in, and the free port that it was given. */
export function openLoopbackSocket(): { readonly fd: number; readonly port: number } {
  const { fd } = openSocket('tcp', AF_INET)
  return { fd, port: bindAnyPort(fd, '127.0.0.1') }
}

export function openClientSocket(netns: NetworkNamespace, transport: Transport, family: 4 | 6): number {
  return netns.enter(() => openSocket(transport, family === 4 ? AF_INET : AF_INET6)).fd
}

/** For a client that wants to know its port before it connects. */
export function openNumberedSocket(
  netns: NetworkNamespace,
  family: 4 | 6,
): { readonly fd: number; readonly port: number } {
  const fd = openClientSocket(netns, 'tcp', family)
  return { fd, port: bindAnyPort(fd, family === 4 ? '0.0.0.0' : '::') }
}

/** Answers the port. Closes the socket when it has none. */
function bindAnyPort(fd: number, address: string): number {
  const sockaddr = encodeAddress(address, 0)
  try {
    mustCall(`bind to ${address}`, 'bind', fd, sockaddr, sockaddr.length)
    mustCall('find the port of a socket', 'getsockname', fd, sockaddr, Uint32Array.of(sockaddr.length))
  } catch (error) {
    tryCall('close', fd)
    throw error
  }
  return decodeAddress(sockaddr).port
}

export function canConnect(netns: NetworkNamespace, host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = new Socket({ fd: openClientSocket(netns, 'tcp', host.includes(':') ? 6 : 4) })
    const finish = (connected: boolean) => {
      resolve(connected)
      socket.destroy()
    }
    socket.setTimeout(CONNECT_TIMEOUT_MS, () => finish(false))
    socket.on('error', () => finish(false))
    socket.connect({ host, port }, () => finish(true))
  })
}

/** Of both families where the kernel has IPv6, unless the family is given. */
function openSocket(transport: Transport, only?: number): { fd: number; family: number } {
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

function familyOf(address: string): number {
  return address.includes(':') ? AF_INET6 : AF_INET
}
