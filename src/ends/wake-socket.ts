// Sends packets with headers of the proxy's own.

import { closeSync } from 'node:fs'
import type { Family } from '../lib/ip.ts'
import { lastErrno, mustCall, tryCall } from '../system/libc.ts'
import { addressFamily, encodeAddress } from '../system/socket-address.ts'

const SOCK_RAW_NONBLOCK_CLOEXEC = 3 | 0o4000 | 0o2000000
/** Of this kind, a socket takes whole packets. */
const IPPROTO_RAW = 255

export class WakeSocket {
  readonly #fd: number

  constructor(family: Family) {
    const domain = addressFamily(family)
    this.#fd = mustCall('open a raw socket', 'socket', domain, SOCK_RAW_NONBLOCK_CLOEXEC, IPPROTO_RAW)
  }

  /**
   * `towards`: the host that the packet comes to in the end, whose route it takes: the node may have none to the address that the
   * packet still has. False when the kernel does not take it.
   */
  send(packet: Uint8Array, towards: string): boolean {
    const address = encodeAddress(towards, 0)
    const sent = tryCall('sendto', this.#fd, packet, packet.length, 0, address, address.length)
    return sent >= 0 || lastErrno() === 'EAGAIN'
  }

  close(): void {
    closeSync(this.#fd)
  }
}
