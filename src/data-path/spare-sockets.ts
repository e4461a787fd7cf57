// Sockets for backends, opened before they are needed. A client is accepted only when there is one: without file descriptors it
// waits in the kernel's queue instead of being turned away.

import { boundCall, lastErrno } from '../system/libc.ts'
import type { Family } from '../lib/ip.ts'
import { openSocket, type PoolProtocol } from './sockets.ts'

/** File descriptors that listeners and connections leave to the rest of this process: the watch of the API server, healthz. */
const LEFT_TO_OTHERS = 64

/** Connections take only file descriptors below this one. The kernel gives out the lowest free number. */
export function endOfFds(limit: number): number {
  return limit - Math.min(LEFT_TO_OTHERS, limit >> 2)
}

export class SpareSockets {
  readonly #endFd: number
  readonly #close = boundCall('close')
  readonly #spares: Record<Family, number> = { 4: -1, 6: -1 }
  #errno = ''

  constructor(endFd: number) {
    this.#endFd = endFd
  }

  /** Why there was no socket the last time. */
  get errno(): string {
    return this.#errno
  }

  /** Whether there is a socket for a TCP backend. */
  prepare(family: Family): boolean {
    if (this.#spares[family] === -1) this.#spares[family] = this.#open(family, 'TCP')
    return this.#spares[family] !== -1
  }

  /** A socket for one backend, or -1. */
  take(family: Family, protocol: PoolProtocol): number {
    const spare = protocol === 'TCP' ? this.#spares[family] : -1
    if (spare === -1) return this.#open(family, protocol)
    this.#spares[family] = -1
    return spare
  }

  dispose(): void {
    for (const fd of Object.values(this.#spares)) if (fd !== -1) this.#close(fd)
    this.#spares[4] = this.#spares[6] = -1
  }

  #open(family: Family, protocol: PoolProtocol): number {
    const fd = openSocket(family, protocol)
    if (fd !== -1 && fd < this.#endFd) return fd
    this.#errno = fd === -1 ? lastErrno() : 'EMFILE'
    if (fd !== -1) this.#close(fd)
    return -1
  }
}
