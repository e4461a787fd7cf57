// The server in every pod: HTTP on each of its ports, and an echo of datagrams on the same. The sockets are the pod's; the
// process is the sandbox's, so a pod costs a millisecond and no memory to speak of.

import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { dropPackets } from '../../../../src/system/libc.ts'
import type { NetworkNamespace } from '../netns/network-namespace.ts'
import { openBoundSocket } from '../netns/sockets.ts'
import type { Behaviour, PodServer } from '../pod-server.ts'
import type { PodLog } from './pod-log.ts'
import { answerTo, echoOf, greeting, plainAddress, type Identity, type Peer } from './answer.ts'

const BACKLOG = 1024
const STREAM_INTERVAL_MS = 1000

export interface WhoamiOptions {
  readonly netns: NetworkNamespace
  readonly identity: Identity
  readonly ports: readonly number[]
  /** Gets a line per request. */
  readonly log?: PodLog
}

export class WhoamiServer implements PodServer {
  readonly #options: WhoamiOptions
  #behaviour: Behaviour = 'refuse'
  #servers: Server[] = []
  #listening: number[] = []
  #udpSockets: UdpSocket[] = []
  readonly #connections = new Set<Socket>()

  constructor(options: WhoamiOptions) {
    this.#options = options
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
        this.#serveHttp(port)
        this.#serveUdp(port)
      }
    } catch (error) {
      this.close()
      throw error
    }
  }

  #serveHttp(port: number): void {
    const server = createServer((request, response) => this.#answer(request, response))
    server.on('connection', (socket: Socket) => {
      this.#connections.add(socket)
      socket.on('close', () => this.#connections.delete(socket))
    })
    const fd = openBoundSocket(this.#options.netns, 'tcp', port)
    server.listen({ fd, backlog: BACKLOG })
    this.#servers.push(server)
    this.#listening.push(fd)
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    if (this.#behaviour === 'hang') return
    const { identity } = this.#options
    const path = request.url ?? '/'
    const peer = peerOf(request.socket)
    this.#options.log?.append(`${request.method} ${path} from ${peer.clientIP} port ${peer.clientPort}`)
    response.setHeader('x-client', `${peer.clientIP} port ${peer.clientPort}`)
    response.setHeader('x-pod', identity.hostname)
    response.setHeader('x-node', identity.node)
    if (path.startsWith('/stream')) return this.#stream(response)
    const { type, body } = answerTo(path, identity, peer)
    response.setHeader('content-type', `${type}; charset=utf-8`)
    response.setHeader('content-length', Buffer.byteLength(body))
    response.end(request.method === 'HEAD' ? undefined : body)
  }

  /** A line per second until the client hangs up: a connection to watch while things change. */
  #stream(response: ServerResponse): void {
    response.setHeader('content-type', 'text/plain; charset=utf-8')
    const say = () => response.write(greeting(this.#options.identity))
    say()
    const timer = setInterval(say, STREAM_INTERVAL_MS)
    response.on('close', () => clearInterval(timer))
  }

  #serveUdp(port: number): void {
    const fd = openBoundSocket(this.#options.netns, 'udp', port)
    const socket = createSocket('udp6')
    socket.on('message', (payload, { address, port: clientPort }) => {
      if (this.#behaviour !== 'serve') return
      const clientIP = plainAddress(address)
      this.#options.log?.append(`${payload.length} bytes from ${clientIP} port ${clientPort}`)
      const echo = echoOf(payload, this.#options.identity, { clientIP, clientPort, serverPort: port })
      socket.send(echo, clientPort, address, () => {})
    })
    // A client that is gone is no concern of the server.
    socket.on('error', () => {})
    socket.bind({ fd, exclusive: true })
    this.#udpSockets.push(socket)
  }
}

function peerOf(socket: Socket): Peer {
  return {
    clientIP: plainAddress(socket.remoteAddress),
    clientPort: socket.remotePort ?? 0,
    serverIP: plainAddress(socket.localAddress),
    serverPort: socket.localPort ?? 0,
  }
}
