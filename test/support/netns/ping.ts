// Pings over raw sockets: type, code, checksum (of IPv4 alone, the kernel makes that of ICMPv6), identifier and number.

import { closeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { answersWithinMs, resendMs, type Answer, type ProbeOptions } from './probe.ts'
import { connectSocket, openRaw, receivePacket, sendPacket } from './sockets.ts'
import { KernelError } from '../../../src/lib/errors.ts'
import type { Netns } from './netns.ts'

const ICMP = { 4: { protocol: 1, request: 8, reply: 0 }, 6: { protocol: 58, request: 128, reply: 129 } } as const
const pollMs = 3

/** Sends a ping, again after a while, and waits for the answer. Whoever answers is taken for the node. */
export async function pingProbe(netns: Netns, address: string, options: ProbeOptions = {}): Promise<Answer> {
  const family = address.includes(':') ? 6 : 4
  const { protocol, request, reply } = ICMP[family]
  const fd = openRaw(netns, family, protocol)
  const id = options.fromPort ?? 1
  try {
    const own = connectSocket(fd, { ip: address, port: 0 })
    const end = performance.now() + (options.timeoutMs ?? answersWithinMs())
    for (let sendAt = 0; performance.now() < end; await sleep(pollMs)) {
      if (performance.now() >= sendAt) {
        sendPacket(fd, encode(request, id))
        sendAt = performance.now() + resendMs
      }
      // A raw socket of IPv4 sees its headers.
      const got = receivePacket(fd)?.packet.subarray(family === 4 ? 20 : 0)
      if (got === undefined || got[0] !== reply || new DataView(got.buffer, got.byteOffset).getUint16(4) !== id)
        continue
      const greeting = { host: 'node', port: 0, at: address, seenAs: own.ip, seenPort: 0 }
      return { kind: 'answered', greeting, client: own.ip, clientPort: 0 }
    }
    return { kind: 'silent' }
  } catch (error) {
    if (!(error instanceof KernelError)) throw error
    return error.errno === 'ECONNREFUSED' ? { kind: 'refused' } : { kind: 'failed', code: error.errno }
  } finally {
    closeSync(fd)
  }
}

function encode(type: number, id: number): Uint8Array {
  const packet = new Uint8Array(8)
  const view = new DataView(packet.buffer)
  view.setUint8(0, type)
  view.setUint16(4, id)
  const sum = (type << 8) + id
  view.setUint16(2, ~((sum & 0xffff) + (sum >> 16)) & 0xffff)
  return packet
}
