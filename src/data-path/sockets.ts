// The sockets of the data path: how they are made and set.

import { boundCall, lastErrno, mustCall, tryCall } from '../system/libc.ts'
import { KernelError } from '../lib/errors.ts'
import { type Family, ipFamily } from '../lib/ip.ts'
import { addressFamily, ADDRESS_LENGTH, decodeAddress, encodeAddress } from '../system/socket-address.ts'

export type PoolProtocol = 'TCP' | 'UDP'

const SOCK_STREAM = 1
const SOCK_DGRAM = 2
export const SOCK_NONBLOCK = 0o4000
export const SOCK_CLOEXEC = 0o2000000

const SOL_SOCKET = 1
const SO_REUSEADDR = 2
const SO_KEEPALIVE = 9
const SO_LINGER = 13
const SOL_IP = 0
const IP_FREEBIND = 15
const SOL_TCP = 6
const TCP_NODELAY = 1
const TCP_KEEPIDLE = 4
const SOL_IPV6 = 41
const IPV6_V6ONLY = 26
const IPV6_FREEBIND = 78

/** How long a silent peer is trusted to be there. */
const KEEPALIVE_SECONDS = 60
/** How many clients may wait to be accepted. */
export const BACKLOG = 4096

const ONE = new Int32Array([1])
const KEEPIDLE = new Int32Array([KEEPALIVE_SECONDS])
const LINGER_RESET = new Int32Array([1, 0])

let socketCall: ReturnType<typeof boundCall<'socket'>> | undefined
let setsockoptCall: ReturnType<typeof boundCall<'setsockopt'>> | undefined

/** A socket for one backend, or -1. */
export function openSocket(family: Family, protocol: PoolProtocol): number {
  socketCall ??= boundCall('socket')
  const type = protocol === 'TCP' ? SOCK_STREAM : SOCK_DGRAM
  const fd = socketCall(addressFamily(family), type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)
  // Small writes go at once. Connections that a listener accepts inherit it.
  if (fd !== -1 && protocol === 'TCP') setOption(fd, SOL_TCP, TCP_NODELAY, ONE)
  return fd
}

/** Peers that vanished are noticed. Connections that a listener accepts inherit it. */
export function keepAlive(fd: number): void {
  setOption(fd, SOL_SOCKET, SO_KEEPALIVE, ONE)
  setOption(fd, SOL_TCP, TCP_KEEPIDLE, KEEPIDLE)
}

function setOption(fd: number, level: number, name: number, value: Int32Array): number {
  setsockoptCall ??= boundCall('setsockopt')
  return setsockoptCall(fd, level, name, value, value.byteLength)
}

/** Closing this socket will reset the connection instead of ending it. */
export function resetOnClose(fd: number): void {
  setOption(fd, SOL_SOCKET, SO_LINGER, LINGER_RESET)
}

/** Lets this socket be bound to an address and port that other sockets are bound to. */
export function shareAddress(fd: number): void {
  setOption(fd, SOL_SOCKET, SO_REUSEADDR, ONE)
}

export interface ListenerOptions {
  readonly family: Family
  readonly protocol: PoolProtocol
  readonly address: string
  /** 0: any that is free. */
  readonly port: number
  /** Where file descriptors end that it may take; undefined: nowhere. */
  readonly endFd?: number | undefined
}

export interface OpenListener {
  readonly port: number
  readonly fd: number
}

/** Listens on a port; undefined when another socket has it. */
export function openListener(options: ListenerOptions): OpenListener | undefined {
  const { family, protocol, address, port, endFd = Infinity } = options
  const fd = openSocket(family, protocol)
  if (fd === -1) throw new KernelError('open a socket', lastErrno())
  if (fd >= endFd) {
    tryCall('close', fd)
    throw new KernelError('open a socket', 'EMFILE')
  }
  // Connections of an earlier listener must not keep the port. With UDP this would share it.
  if (protocol === 'TCP') shareAddress(fd)
  if (family === 6) setOption(fd, SOL_IPV6, IPV6_V6ONLY, ONE)
  // The address may come later than we do.
  if (family === 6) setOption(fd, SOL_IPV6, IPV6_FREEBIND, ONE)
  else setOption(fd, SOL_IP, IP_FREEBIND, ONE)
  const bytes = encodeAddress(address, port)
  const isBound = tryCall('bind', fd, bytes, bytes.length) === 0
  if (isBound && (protocol === 'UDP' || startListening(fd))) return { fd, port: localAddress(fd).port }
  const errno = lastErrno()
  tryCall('close', fd)
  if (errno === 'EADDRINUSE' || errno === 'EACCES') return undefined
  throw new KernelError(`listen on ${address} port ${port}/${protocol}`, errno)
}

/** Whether another socket has the port. */
export function isPortTaken({ address, port, protocol }: Omit<ListenerOptions, 'family' | 'endFd'>): boolean {
  const opened = openListener({ family: ipFamily(address) ?? 4, address, port, protocol })
  if (opened !== undefined) tryCall('close', opened.fd)
  return opened === undefined
}

function startListening(fd: number): boolean {
  keepAlive(fd)
  return tryCall('listen', fd, BACKLOG) === 0
}

/** The address of a socket's own end or of the other one; undefined when it has none, as after a reset. */
export function readSocketAddress(which: 'getsockname' | 'getpeername', fd: number): Uint8Array | undefined {
  const address = new Uint8Array(ADDRESS_LENGTH)
  const length = new Uint32Array([ADDRESS_LENGTH])
  return tryCall(which, fd, address, length) === -1 ? undefined : address.subarray(0, length[0])
}

function localAddress(fd: number): { readonly ip: string; readonly port: number } {
  const address = new Uint8Array(ADDRESS_LENGTH)
  mustCall('read the address of a socket', 'getsockname', fd, address, new Uint32Array([address.length]))
  return decodeAddress(address)
}
