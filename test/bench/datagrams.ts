// Client and server of UDP on one thread, and what the calls between them take of its CPU. The client does not call connect().

import { boundCall, lastErrno, mustCall } from '../../src/system/libc.ts'
import { addressFamily, encodeAddress } from '../../src/system/socket-address.ts'

const QUESTIONS = 100
const WARM_UP = 50
const SOCK_DGRAM = 2
const SOL_SOCKET = 1
const SO_RCVTIMEO = 20
/** One second. */
const patience = BigUint64Array.of(1n, 0n)
const CLOCK_THREAD_CPUTIME_ID = 3

const [socket, sendto, recvfrom, close, clockGettime] = [
  boundCall('socket'),
  boundCall('sendto'),
  boundCall('recvfrom'),
  boundCall('close'),
  boundCall('clock_gettime'),
] as const

const time = new BigUint64Array(2)
function cpuNs(): number {
  clockGettime(CLOCK_THREAD_CPUTIME_ID, time)
  return Number(time[0]) * 1e9 + Number(time[1])
}

/** As long as a question of DNS. */
const text = new Uint8Array(60)
const sender = new Uint8Array(16)
const senderLength = new Uint32Array(1)

export class DatagramClient {
  readonly #server: number

  /** The server is at one address: the answers come from there. */
  constructor(ip: string, port: number) {
    this.#server = open()
    const address = encodeAddress(ip, port)
    mustCall('bind', 'bind', this.#server, address, address.length)
  }

  /** Nanoseconds of a question and its answer, on average. `each`: the socket is opened for each, and closed after it. */
  ask(ip: string, port: number, sockets: 'one' | 'each'): number {
    const to = encodeAddress(ip, port)
    const kept = sockets === 'one' ? open() : -1
    let sum = 0
    for (let i = -WARM_UP; i < QUESTIONS; i++) {
      const startNs = cpuNs()
      const client = sockets === 'one' ? kept : open()
      exchange(client, this.#server, to)
      if (sockets === 'each') close(client)
      if (i >= 0) sum += cpuNs() - startNs
      // It has to be what was asked, too.
      if (!to.subarray(0, 8).every((byte, at) => byte === sender[at])) throw new Error(`Another one than ${ip} answers`)
    }
    if (sockets === 'one') close(kept)
    return sum / QUESTIONS
  }

  close(): void {
    close(this.#server)
  }
}

function open(): number {
  const fd = socket(addressFamily(4), SOCK_DGRAM, 0)
  mustCall('set up', 'setsockopt', fd, SOL_SOCKET, SO_RCVTIMEO, patience, 16)
  return fd
}

function exchange(client: number, server: number, to: Uint8Array): void {
  if (sendto(client, text, text.length, 0, to, to.length) < 0) throw new Error(`Cannot send: ${lastErrno()}`)
  receive(server)
  sendto(server, text, text.length, 0, sender, 16)
  receive(client)
}

function receive(fd: number): void {
  senderLength[0] = sender.length
  if (recvfrom(fd, text, text.length, 0, sender, senderLength) < 0) throw new Error(`No datagram came: ${lastErrno()}`)
}
