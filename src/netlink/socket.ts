// A netlink socket: datagrams to and from the kernel. What they mean is in client.ts.

import { KernelError } from '../lib/errors.ts'
import { describeDatagram, type Vocabulary } from './debug.ts'
import {
  NETLINK_ADD_MEMBERSHIP,
  NETLINK_CAP_ACK,
  NETLINK_DROP_MEMBERSHIP,
  NETLINK_EXT_ACK,
  SOL_NETLINK,
} from './uapi/netlink.ts'
import { LITTLE_ENDIAN } from '../lib/endian.ts'
import { lastErrno, mustCall, tryCall } from '../system/libc.ts'
import type { Exchange } from './client.ts'

// include/uapi/asm-generic/socket.h, include/linux/socket.h
const AF_NETLINK = 16
const SOCK_RAW = 3
const SOCK_CLOEXEC = 0o2000000
const SOL_SOCKET = 1
const SO_RCVTIMEO = 20
const SO_SNDBUFFORCE = 32
const SO_RCVBUFFORCE = 33
const MSG_TRUNC = 0x20
const MSG_DONTWAIT = 0x40

/** struct sockaddr_nl: family (2 bytes), padding (2), port (4), groups (4). */
const ADDRESS_LENGTH = 12

/** The kernel sends no dump in larger pieces. */
const RECEIVE_SIZE = 64 * 1024

const DEFAULT_RECEIVE_BUFFER = 1 << 20
const ANSWER_TIMEOUT_MS = 5000

/** Prints what goes over every socket. */
const DEBUG = process.env['KUBE_PROXY_NLDEBUG'] === '1'

export interface NetlinkSocketOptions {
  readonly receiveBuffer?: number
  /** How long receive('wait') waits. */
  readonly timeoutMs?: number
  /** Multicast groups to listen to. */
  readonly groups?: readonly number[]
  /** Names what goes over it, for KUBE_PROXY_NLDEBUG=1. */
  readonly vocabulary?: Vocabulary
}

export class NetlinkSocket {
  readonly fd: number
  /** The number by which the kernel knows this socket. */
  readonly port: number
  /** All that goes over it is printed, which send() and receive() do. */
  readonly isPrinted = DEBUG
  readonly #vocabulary: Vocabulary | undefined
  readonly #received = new Uint8Array(RECEIVE_SIZE)
  readonly #from = new Uint32Array(ADDRESS_LENGTH / 4)
  readonly #fromLength = new Uint32Array(1)
  #sendBuffer = 0
  #closed = false
  /** Sends a request and gives what comes back: what a NetlinkClient needs. */
  readonly exchange: Exchange = (request, mode) => this.#exchange(request, mode)

  constructor(protocol: number, options: NetlinkSocketOptions = {}) {
    this.#vocabulary = options.vocabulary
    this.fd = mustCall('open a netlink socket', 'socket', AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol)
    try {
      // Error messages as text, and without the request quoted in them. Without these the kernel still answers.
      this.#trySetOption(SOL_NETLINK, NETLINK_EXT_ACK, 1)
      this.#trySetOption(SOL_NETLINK, NETLINK_CAP_ACK, 1)
      this.#trySetOption(SOL_SOCKET, SO_RCVBUFFORCE, options.receiveBuffer ?? DEFAULT_RECEIVE_BUFFER)
      this.#setReceiveTimeout(options.timeoutMs ?? ANSWER_TIMEOUT_MS)
      this.port = this.#bind()
      for (const group of options.groups ?? []) {
        this.setMembership(group, 'join')
      }
    } catch (error) {
      this.close()
      throw error
    }
  }

  /** Sends a datagram, of any size. The kernel has done what it says, or refused to, when this returns. */
  send(bytes: Uint8Array): void {
    this.makeRoom(bytes.length)
    if (DEBUG) this.#print('>', bytes)
    const sent = mustCall(`send ${bytes.length} bytes over netlink`, 'send', this.fd, bytes, bytes.length, 0)
    if (sent !== bytes.length)
      throw new KernelError(`send ${bytes.length} bytes over netlink, only ${sent} went`, 'EIO')
  }

  /** The kernel takes no longer datagram than the socket has room for. */
  makeRoom(length: number): void {
    if (length <= this.#sendBuffer) return
    this.#sendBuffer = Math.max(length + (length >> 1), 1 << 18)
    this.#trySetOption(SOL_SOCKET, SO_SNDBUFFORCE, this.#sendBuffer)
  }

  /** One datagram after the other, as receive() gives them: `poll` ends when there is no more. */
  *received(mode: 'wait' | 'poll'): Generator<Uint8Array> {
    for (let datagram = this.receive(mode); datagram !== undefined; datagram = this.receive(mode)) yield datagram
  }

  /**
   * The next datagram from the kernel, valid until the next call. `poll` gives undefined when there is none; `wait` waits
   * for `timeoutMs`, 5 s by default, and then fails with ETIMEDOUT. ENOBUFS says that datagrams were lost.
   */
  receive(mode: 'wait' | 'poll'): Uint8Array | undefined {
    const flags = MSG_TRUNC | (mode === 'poll' ? MSG_DONTWAIT : 0)
    for (;;) {
      this.#fromLength[0] = ADDRESS_LENGTH
      const bytes = this.#received
      const length = tryCall('recvfrom', this.fd, bytes, bytes.length, flags, this.#from, this.#fromLength)
      if (length === -1) {
        const errno = lastErrno()
        if (errno === 'EINTR') continue
        if (errno === 'EAGAIN' && mode === 'poll') return undefined
        throw new KernelError('receive from netlink', errno === 'EAGAIN' ? 'ETIMEDOUT' : errno)
      }
      if (length > bytes.length) throw new KernelError(`receive ${length} bytes from netlink`, 'EMSGSIZE')
      // Any process may send to this socket. Only the kernel has port 0.
      if (this.#from[1] !== 0) continue
      const datagram = bytes.subarray(0, length)
      if (DEBUG) this.#print('<', datagram)
      return datagram
    }
  }

  /** Joins or leaves a multicast group. */
  setMembership(group: number, action: 'join' | 'leave'): void {
    const name = action === 'join' ? NETLINK_ADD_MEMBERSHIP : NETLINK_DROP_MEMBERSHIP
    this.#setOption(`${action} netlink group ${group}`, SOL_NETLINK, name, Uint32Array.of(group))
  }

  #setOption(op: string, level: number, name: number, value: Uint8Array | Uint32Array): void {
    mustCall(op, 'setsockopt', this.fd, level, name, value, value.byteLength)
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    tryCall('close', this.fd)
  }

  *#exchange(request: Uint8Array, mode: 'wait' | 'poll'): Generator<Uint8Array> {
    this.send(request)
    yield* this.received(mode)
  }

  #print(direction: '>' | '<', datagram: Uint8Array): void {
    const lines = describeDatagram(datagram, this.#vocabulary).map((line) => `netlink ${direction} ${line}\n`)
    process.stderr.write(lines.join(''))
  }

  #trySetOption(level: number, name: number, value: number): void {
    tryCall('setsockopt', this.fd, level, name, Uint32Array.of(value), 4)
  }

  /** struct timeval, whose two members are as wide as a pointer. */
  #setReceiveTimeout(milliseconds: number): void {
    const timeval = new Uint8Array(16)
    const view = new DataView(timeval.buffer)
    view.setBigUint64(0, BigInt(Math.floor(milliseconds / 1000)), LITTLE_ENDIAN)
    view.setBigUint64(8, BigInt((milliseconds % 1000) * 1000), LITTLE_ENDIAN)
    this.#setOption('set the receive timeout of a netlink socket', SOL_SOCKET, SO_RCVTIMEO, timeval)
  }

  #bind(): number {
    const address = new Uint8Array(ADDRESS_LENGTH)
    const view = new DataView(address.buffer)
    view.setUint16(0, AF_NETLINK, LITTLE_ENDIAN)
    mustCall('bind a netlink socket', 'bind', this.fd, address, ADDRESS_LENGTH)
    mustCall('name a netlink socket', 'getsockname', this.fd, address, Uint32Array.of(ADDRESS_LENGTH))
    return view.getUint32(4, LITTLE_ENDIAN)
  }
}
