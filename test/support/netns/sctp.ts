// Just enough of SCTP to see where an association would go: the first two of its four messages, over raw sockets. So it
// works on kernels without SCTP, which track and translate it all the same.
//
// RFC 9260: every packet begins with ports (2 x 16 bits), a tag (32) and a CRC32c (32, least significant byte first).
// INIT and INIT ACK are chunks of type 1 and 2: type (8), flags (8), length (16), the sender's tag (32), window (32),
// streams out and in (2 x 16), first sequence number (32), and parameters.

import { closeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { answersWithinMs, resendMs, type Answer, type ProbeOptions, type Target } from './probe.ts'
import { connectSocket, openRawSctp, receivePacket, sendPacket } from './sockets.ts'
import { KernelError } from '../../../src/lib/errors.ts'
import type { Greeting } from './echo-server.ts'
import type { DualStack } from '../addresses.ts'
import type { Netns } from './netns.ts'

const INIT = 1
const INIT_ACK = 2
const chunkAt = 12
const parametersAt = chunkAt + 20
const pollMs = 3
let nextPort = 40_000

interface SctpMessage {
  readonly sourcePort: number
  readonly port: number
  /** Of the receiver; 0 in INIT. */
  readonly tag: number
  readonly type: number
  /** Of the sender. */
  readonly ownTag: number
  /** What we put into the parameters. */
  readonly text: string
}

/** Answers every INIT to the port with an INIT ACK that carries the greeting, over IPv4 and IPv6; `at` these addresses alone. */
export function serveSctp(netns: Netns, host: string, port: number, at?: DualStack): Disposable {
  const sockets = ([4, 6] as const).map((family) => openRawSctp(netns, family, at?.[family]))
  const timer = setInterval(() => {
    for (const fd of sockets) answerAll(fd, host, port)
  }, pollMs)
  return {
    [Symbol.dispose]() {
      clearInterval(timer)
      sockets.forEach((fd) => closeSync(fd))
    },
  }
}

function answerAll(fd: number, host: string, port: number): void {
  for (let got = receivePacket(fd); got !== undefined; got = receivePacket(fd)) {
    const message = decode(got.packet)
    if (message.type !== INIT || message.port !== port) continue
    const greeting: Greeting = { host, port, at: '', seenAs: got.from.ip, seenPort: message.sourcePort }
    const ack = {
      sourcePort: port,
      port: message.sourcePort,
      tag: message.ownTag,
      type: INIT_ACK,
      ownTag: 7,
      text: JSON.stringify(greeting),
    }
    sendPacket(fd, encode(ack), { ip: got.from.ip, port: 0 })
  }
}

/** Sends an INIT, again after a while, and waits for the INIT ACK. */
export async function sctpProbe(netns: Netns, to: Target, options: ProbeOptions = {}): Promise<Answer> {
  const fd = openRawSctp(netns, to.address.includes(':') ? 6 : 4)
  const sourcePort = options.fromPort ?? nextPort++
  try {
    const own = connectSocket(fd, { ip: to.address, port: 0 })
    const init = encode({ sourcePort, port: to.port, tag: 0, type: INIT, ownTag: sourcePort, text: '' })
    const end = performance.now() + (options.timeoutMs ?? answersWithinMs())
    for (let sendAt = 0; performance.now() < end;) {
      if (performance.now() >= sendAt) {
        sendOrLose(fd, init)
        sendAt = performance.now() + resendMs
      }
      const got = receivePacket(fd)
      const message = got && decode(got.packet)
      if (message?.type === INIT_ACK && message.port === sourcePort && message.sourcePort === to.port) {
        const greeting = JSON.parse(message.text) as Greeting
        return { kind: 'answered', greeting, client: own.ip, clientPort: sourcePort }
      }
      await sleep(pollMs)
    }
    return { kind: 'silent' }
  } catch (error) {
    const isRefused = error instanceof KernelError && error.errno === 'ECONNREFUSED'
    return isRefused ? { kind: 'refused' } : { kind: 'failed', code: String(error) }
  } finally {
    closeSync(fd)
  }
}

/** EPERM: a rule of the sender's own host has eaten it. Whether it says so (a reject) or not, time will tell. */
function sendOrLose(fd: number, packet: Uint8Array): void {
  try {
    sendPacket(fd, packet)
  } catch (error) {
    if (!(error instanceof KernelError && error.errno === 'EPERM')) throw error
  }
}

function encode(message: SctpMessage): Uint8Array {
  const text = new TextEncoder().encode(message.text)
  const parameterLength = text.length === 0 ? 0 : 4 + text.length
  const packet = new Uint8Array(parametersAt + Math.ceil(parameterLength / 4) * 4)
  const view = new DataView(packet.buffer)
  view.setUint16(0, message.sourcePort)
  view.setUint16(2, message.port)
  view.setUint32(4, message.tag)
  view.setUint8(chunkAt, message.type)
  view.setUint16(chunkAt + 2, parametersAt - chunkAt + parameterLength)
  view.setUint32(chunkAt + 4, message.ownTag)
  view.setUint32(chunkAt + 8, 65_536)
  view.setUint16(chunkAt + 12, 1)
  view.setUint16(chunkAt + 14, 1)
  view.setUint32(chunkAt + 16, 1)
  if (text.length > 0) {
    // The two upper bits: a receiver that does not know the parameter skips it and goes on.
    view.setUint16(parametersAt, 0x8fff)
    view.setUint16(parametersAt + 2, parameterLength)
    packet.set(text, parametersAt + 4)
  }
  view.setUint32(8, crc32c(packet), true)
  return packet
}

/** Reads a packet as a raw socket gives it: over IPv4 with its IP header. */
function decode(received: Uint8Array): SctpMessage {
  const first = received[0] ?? 0
  const packet = first >> 4 === 4 && received[9] === 132 ? received.subarray((first & 15) * 4) : received
  const view = new DataView(packet.buffer, packet.byteOffset, packet.length)
  const type = view.getUint8(chunkAt)
  if (type !== INIT && type !== INIT_ACK) return { sourcePort: 0, port: 0, tag: 0, type, ownTag: 0, text: '' }
  const hasText = packet.length > parametersAt
  const textLength = hasText ? view.getUint16(parametersAt + 2) - 4 : 0
  return {
    sourcePort: view.getUint16(0),
    port: view.getUint16(2),
    tag: view.getUint32(4),
    type,
    ownTag: view.getUint32(chunkAt + 4),
    text: new TextDecoder().decode(packet.subarray(parametersAt + 4, parametersAt + 4 + textLength)),
  }
}

function crc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1
  }
  return ~crc >>> 0
}
