// Datagrams from one port to one address, one question at a time.

import { createSocket, type Socket } from 'node:dgram'
import type { NetworkNamespace } from '../../packages/sandbox/src/netns/network-namespace.ts'
import { openClientSocket } from '../../packages/sandbox/src/netns/sockets.ts'
import type { Endpoint } from './exchange.ts'

export class UdpFlow implements Disposable {
  readonly #socket: Socket
  #asked = 0
  #settle: ((why: string | undefined) => void) | undefined
  /** The pod that answered last. */
  pod: string | undefined

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('message', (message) => {
      const [, pod, number] = /^\S+ from (\S+)\n.*\n(\d+)$/.exec(message.toString('latin1')) ?? []
      if (Number(number) !== this.#asked) return
      this.pod = pod
      this.#settle?.(undefined)
    })
    // What an earlier datagram met is told to a later one.
    socket.on('error', (error: NodeJS.ErrnoException) => this.#settle?.(error.code ?? error.message))
  }

  static open(from: NetworkNamespace, { host, port }: Endpoint): Promise<UdpFlow> {
    const socket = createSocket('udp4')
    return new Promise((resolve, reject) => {
      socket.once('error', reject)
      socket.bind({ fd: openClientSocket(from, 'udp', 4) }, () => {
        socket.connect(port, host, () => {
          socket.off('error', reject)
          resolve(new UdpFlow(socket))
        })
      })
    })
  }

  /** Asks and waits for the answer to this question. Returns what went wrong. */
  ask(timeoutMs: number): Promise<string | undefined> {
    this.#asked++
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#settle?.('silent'), timeoutMs)
      this.#settle = (why) => {
        clearTimeout(timer)
        this.#settle = undefined
        resolve(why)
      }
      this.#socket.send(String(this.#asked), (error) => {
        if (error !== null) this.#settle?.((error as NodeJS.ErrnoException).code ?? error.message)
      })
    })
  }

  [Symbol.dispose](): void {
    this.#socket.close()
  }
}
