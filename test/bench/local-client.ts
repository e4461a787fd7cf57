// Client and server on one thread, and what the calls between them take of its CPU.

import { boundCall, lastErrno, mustCall } from '../../src/system/libc.ts'
import { ADDRESS_LENGTH, addressFamily, encodeAddress, familyOf } from '../../src/system/socket-address.ts'

/** In one batch, and before it, so that the processor has at hand what it needs. */
export const CONNECTS = 100
const WARM_UP = 50
const PIECE = 1 << 16
const PIECES = 200
const SOCK_STREAM = 1
const SOCK_NONBLOCK = 0o4000
const SOL_SOCKET = 1
const SO_LINGER = 13
const SO_SNDTIMEO = 21
/** One second. */
const patience = BigUint64Array.of(1n, 0n)
const CLOCK_THREAD_CPUTIME_ID = 3

const time = new BigUint64Array(2)
const clockGettime = boundCall('clock_gettime')
function cpuNs(): number {
  clockGettime(CLOCK_THREAD_CPUTIME_ID, time)
  return Number(time[0]) * 1e9 + Number(time[1])
}

const [socket, connect, accept, close, setsockopt] = [
  boundCall('socket'),
  boundCall('connect'),
  boundCall('accept4'),
  boundCall('close'),
  boundCall('setsockopt'),
] as const
const send = boundCall('send')
const recv = boundCall('recv')
const bytes = new Uint8Array(PIECE)

/** In the network namespace of the thread: it listens on port 8080 of every address, and connects. */
export class LocalClient {
  readonly #listeners: Readonly<Record<4 | 6, number>> = { 4: listen(4), 6: listen(6) }

  /** Nanoseconds of connect() to this address, on average; undefined when one of them failed. */
  connect(ip: string, port: number): number | undefined {
    const address = encodeAddress(ip, port)
    const family = familyOf(address)
    const linger = Uint32Array.of(1, 0)
    let sum = 0
    for (let i = -WARM_UP; i < CONNECTS; i++) {
      const client = socket(addressFamily(family), SOCK_STREAM, 0)
      setsockopt(client, SOL_SOCKET, SO_LINGER, linger, 8)
      setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, patience, 16)
      const startNs = cpuNs()
      const result = connect(client, address, address.length)
      if (i >= 0) sum += cpuNs() - startNs
      if (result !== 0) return failed(client, ip, port)
      close(accepted(this.#listeners[family]))
      close(client)
    }
    return sum / CONNECTS
  }

  /** Nanoseconds per MB, sent and received; undefined when it cannot connect. */
  transfer(ip: string, port: number): number | undefined {
    const address = encodeAddress(ip, port)
    const family = familyOf(address)
    const client = socket(addressFamily(family), SOCK_STREAM, 0)
    setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, patience, 16)
    if (connect(client, address, address.length) !== 0) return failed(client, ip, port)
    const server = accepted(this.#listeners[family])
    const startNs = cpuNs()
    for (let i = 0; i < PIECES; i++) {
      for (let sent = 0, got = 0; got < PIECE;) {
        if (sent < PIECE) sent += send(client, bytes, PIECE - sent, 0)
        got += recv(server, bytes, PIECE, 0)
      }
    }
    const spentNs = cpuNs() - startNs
    close(server)
    close(client)
    return spentNs / ((PIECE * PIECES) / 1e6)
  }

  /** Ends connections that others have made. */
  drop(family: 4 | 6): void {
    for (let fd = 0; fd >= 0;) {
      fd = accept(this.#listeners[family], null, null, 0)
      if (fd >= 0) close(fd)
    }
  }
}

function failed(client: number, ip: string, port: number): undefined {
  console.error(`Cannot connect to ${ip}:${port}: ${lastErrno()}`)
  close(client)
}

function listen(family: 4 | 6): number {
  const IPV6_V6ONLY = 26
  const IPPROTO_IPV6 = 41
  const fd = mustCall('open a socket', 'socket', addressFamily(family), SOCK_STREAM | SOCK_NONBLOCK, 0)
  if (family === 6) mustCall('set up', 'setsockopt', fd, IPPROTO_IPV6, IPV6_V6ONLY, Uint32Array.of(1), 4)
  const address = encodeAddress(family === 4 ? '0.0.0.0' : '::', 8080)
  mustCall('bind', 'bind', fd, address, Math.min(address.length, ADDRESS_LENGTH))
  mustCall('listen', 'listen', fd, 1024)
  return fd
}

/** The kernel may finish a handshake a moment after connect(). */
function accepted(listener: number): number {
  for (;;) {
    const fd = accept(listener, null, null, 0)
    if (fd >= 0) return fd
  }
}
