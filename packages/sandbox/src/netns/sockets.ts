// Sockets opened in another namespace, to be given to Node by their file descriptors.

import { Socket } from 'node:net'
import { openBound, openSocket, type Transport } from '../../../../src/system/bound-socket.ts'
import { AF_INET, AF_INET6, decodeAddress, encodeAddress } from '../../../../src/system/socket-address.ts'
import { mustCall, tryCall } from '../../../../src/system/libc.ts'
import type { NetworkNamespace } from './network-namespace.ts'

const CONNECT_TIMEOUT_MS = 500

/** A socket of the namespace, bound to the port on all addresses of both families, or on one address. */
export function openBoundSocket(netns: NetworkNamespace, transport: Transport, port: number, address?: string): number {
  return netns.enter(() => openBound(transport, port, address))
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
