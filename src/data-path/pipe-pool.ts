// Pipes, through which splice() moves data from socket to socket without copying it.

import { boundCall } from '../system/libc.ts'

export interface Pipe {
  readonly readFd: number
  readonly writeFd: number
}

const O_CLOEXEC = 0o2000000
const O_NONBLOCK = 0o4000
const F_SETPIPE_SZ = 1031

/** How much a pipe takes at once, when the kernel grants it. */
export const PIPE_SIZE: number = 256 * 1024

/** A stream holds a pipe only while something is in it, so few are needed. */
const KEPT = 64

/**
 * Streams whose receivers stall keep their pipes. They can do without, so a quarter of the file descriptors is left to
 * connections.
 */
function endForPipes(endFd: number): number {
  return endFd - (endFd >> 2)
}

export class PipePool {
  readonly #pipe2 = boundCall('pipe2')
  readonly #fcntl = boundCall('fcntl')
  readonly #close = boundCall('close')
  readonly #fds = new Int32Array(2)
  readonly #idle: Pipe[] = []
  readonly #endFd: number

  /** Connections take only file descriptors below `endFd`. */
  constructor(endFd: number) {
    this.#endFd = endForPipes(endFd)
  }

  /** An empty pipe; undefined without file descriptors. */
  take(): Pipe | undefined {
    const idle = this.#idle.pop()
    if (idle !== undefined) return idle
    if (this.#pipe2(this.#fds, O_CLOEXEC | O_NONBLOCK) === -1) return undefined
    const pipe = { readFd: this.#fds[0]!, writeFd: this.#fds[1]! }
    if (Math.max(pipe.readFd, pipe.writeFd) >= this.#endFd) {
      this.discard(pipe)
      return undefined
    }
    this.#fcntl(pipe.writeFd, F_SETPIPE_SZ, PIPE_SIZE)
    return pipe
  }

  /** Takes back a pipe that is empty. */
  giveBack(pipe: Pipe): void {
    if (this.#idle.length < KEPT) this.#idle.push(pipe)
    else this.discard(pipe)
  }

  /** For pipes that are not empty. */
  discard({ readFd, writeFd }: Pipe): void {
    this.#close(readFd)
    this.#close(writeFd)
  }

  dispose(): void {
    for (const pipe of this.#idle.splice(0)) this.discard(pipe)
  }
}
