// The server of every pod but the name server's: HTTP on each of its ports, and an echo of datagrams on the same.

import { plainAddress } from '../../../../src/lib/ip.ts'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../../../../src/lib/errors.ts'
import { createHttpServer, jsonOf, requestListener, type Reply } from '../../../../src/serve/http-server.ts'
import { PodServer, SLOW_MS, type Datagram, type PodServerOptions } from '../pod-server.ts'
import { answerTo, echoOf, greeting, type Identity, type Peer } from './answer.ts'

const STREAM_INTERVAL_MS = 1000

export interface WhoamiOptions extends PodServerOptions {
  readonly identity: Identity
}

export class WhoamiServer extends PodServer {
  readonly #identity: Identity

  constructor(options: WhoamiOptions) {
    super(options)
    this.#identity = options.identity
  }

  protected override createTcpServer(): Server {
    return createHttpServer(
      requestListener(
        (request, response) => this.#answer(request, response),
        (error) => jsonOf(500, { error: messageOf(error) }),
      ),
      { requestTimeout: 0 },
    )
  }

  protected override answerDatagram({ payload, ...peer }: Datagram): Buffer {
    this.log(`${payload.length} bytes from ${peer.clientIP} port ${peer.clientPort}`)
    return echoOf(payload, this.#identity, peer)
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<Reply | void> {
    if (this.isSlow) await sleep(SLOW_MS)
    if (!this.isServing) return
    const path = request.url ?? '/'
    const peer = peerOf(request.socket)
    const client = `${peer.clientIP} port ${peer.clientPort}`
    this.log(`${request.method} ${path} from ${client}`)
    response.setHeader('x-client', client)
    response.setHeader('x-pod', this.#identity.hostname)
    response.setHeader('x-node', this.#identity.node)
    if (path.startsWith('/stream')) return this.#stream(response)
    const { type, body } = answerTo(path, this.#identity, peer)
    return { status: 200, headers: { 'content-type': `${type}; charset=utf-8` }, body }
  }

  /** A line per second until the client hangs up: a connection to watch while things change. */
  #stream(response: ServerResponse): void {
    response.setHeader('content-type', 'text/plain; charset=utf-8')
    const writeLine = () => response.write(greeting(this.#identity))
    writeLine()
    const timer = setInterval(writeLine, STREAM_INTERVAL_MS)
    response.on('close', () => clearInterval(timer))
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
