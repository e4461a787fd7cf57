// What runs in a pod: sockets of the pod's network namespace, TCP and UDP on each port, in the sandbox's process. So a pod costs
// a millisecond and next to no memory.

import { plainAddress } from '../../../src/lib/ip.ts'
import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import type { Server, Socket } from 'node:net'
import { dropPackets } from '../../../src/bpf/packet-filter.ts'
import type { NetworkNamespace } from './netns/network-namespace.ts'
import { openBoundSocket } from './netns/sockets.ts'
import type { PodLog } from './whoami/pod-log.ts'

/**
 * How a pod treats its clients. `hang` answers nothing, not even a client that wants to connect; `refuse` says no; `slow` takes its time
 * for each request.
 */
export type Behaviour = 'serve' | 'hang' | 'refuse' | 'slow'

/** Less than the second that probes wait. */
export const SLOW_MS = 750

export interface Datagram {
  readonly payload: Buffer
  readonly clientIP: string
  readonly clientPort: number
  readonly serverPort: number
}

export interface PodServerOptions {
  readonly netns: NetworkNamespace
  readonly ports: readonly number[]
  /** Gets a line per request. */
  readonly log?: PodLog
}

const BACKLOG = 1024

export abstract class PodServer {
  readonly #options: PodServerOptions
  #behaviour: Behaviour = 'refuse'
  #servers: Server[] = []
  #listening: number[] = []
  #udpSockets: UdpSocket[] = []
  readonly #connections = new Set<Socket>()

  constructor(options: PodServerOptions) {
    this.#options = options
  }

  /** A server for the connections to one port, which does not listen yet. */
  protected abstract createTcpServer(): Server
  /** What is sent back for a datagram, if anything. */
  protected abstract answerDatagram(datagram: Datagram): Uint8Array | undefined

  /** False for a pod that hangs: it leaves what comes on its open connections without an answer, too. */
  protected get isServing(): boolean {
    return this.#behaviour === 'serve' || this.#behaviour === 'slow'
  }

  protected get isSlow(): boolean {
    return this.#behaviour === 'slow'
  }

  protected log(line: string): void {
    this.#options.log?.append(line)
  }

  /** Begins to behave so. Throws when a port cannot be listened on. */
  setBehaviour(behaviour: Behaviour): void {
    if (behaviour === this.#behaviour) return
    const wasListening = this.#behaviour !== 'refuse'
    this.#behaviour = behaviour
    if (behaviour === 'refuse') this.close()
    else if (!wasListening) this.#listen()
    for (const fd of this.#listening) dropPackets(fd, behaviour === 'hang')
  }

  /** Ends all servers and connections, at once. */
  close(): void {
    this.#behaviour = 'refuse'
    this.#listening = []
    for (const server of this.#servers.splice(0)) server.close()
    for (const socket of this.#udpSockets.splice(0)) socket.close()
    for (const connection of this.#connections) connection.resetAndDestroy()
    this.#connections.clear()
  }

  #listen(): void {
    try {
      for (const port of this.#options.ports) {
        this.#listenTcp(port)
        this.#listenUdp(port)
      }
    } catch (error) {
      this.close()
      throw error
    }
  }

  #listenTcp(port: number): void {
    const server = this.createTcpServer()
    server.on('connection', (socket: Socket) => {
      this.#connections.add(socket)
      socket.on('close', () => this.#connections.delete(socket))
    })
    const fd = openBoundSocket(this.#options.netns, 'tcp', port)
    server.listen({ fd, backlog: BACKLOG })
    this.#servers.push(server)
    this.#listening.push(fd)
  }

  #listenUdp(port: number): void {
    const fd = openBoundSocket(this.#options.netns, 'udp', port)
    const socket = createSocket('udp6')
    socket.on('message', (payload, { address, port: clientPort }) => {
      if (!this.isServing) return
      const clientIP = plainAddress(address)
      const answer = this.answerDatagram({ payload, clientIP, clientPort, serverPort: port })
      if (answer !== undefined) socket.send(answer, clientPort, address, () => {})
    })
    // A client that is gone is no concern of the server.
    socket.on('error', () => {})
    socket.bind({ fd, exclusive: true })
    this.#udpSockets.push(socket)
  }
}
