// The server of a pod of `kube-proxy test`: what `kube-proxy probe serve` does, in the sandbox's process.

import { createServer, type Server } from 'node:net'
import { PROGRAM } from '../../../src/probe/objects.ts'
import { formatGreeting } from '../../../src/probe/protocol.ts'
import type { Pod } from './apiserver/objects/pod.ts'
import { PodServer, type Datagram, type PodServerOptions } from './pod-server.ts'

/** A command that runs in such a pod without an image. */
export const PROBE_PROGRAM = PROGRAM

export function isProbePod({ spec }: Pod): boolean {
  return spec.containers.some(({ command, args }) => command?.[0] === PROBE_PROGRAM && args?.[0] === 'probe')
}

export interface ProbeServerOptions extends PodServerOptions {
  readonly pod: string
}

export class ProbeServer extends PodServer {
  readonly #pod: string

  constructor(options: ProbeServerOptions) {
    super(options)
    this.#pod = options.pod
  }

  protected override createTcpServer(): Server {
    return createServer((socket) => {
      if (!this.isServing) return
      socket.on('error', () => {})
      socket.end(formatGreeting(`${this.#pod}:${socket.localPort}`, socket.remoteAddress))
    })
  }

  protected override answerDatagram({ clientIP, serverPort }: Datagram): Buffer {
    return Buffer.from(formatGreeting(`${this.#pod}:${serverPort}`, clientIP))
  }
}
