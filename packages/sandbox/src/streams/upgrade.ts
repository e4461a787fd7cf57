// How a client asks to turn a request into streams: as a WebSocket (kubectl since 1.31), or as SPDY (before).

import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import { badRequest } from '../apiserver/api-error.ts'

export interface UpgradeRequest {
  readonly incoming: IncomingMessage
  readonly socket: Duplex
  readonly head: Buffer
}

export type Upgraded = { readonly kind: 'websocket'; readonly webSocket: WebSocket } | { readonly kind: 'spdy' }

/** No client sends more at once; kubectl's messages have 32 KiB. */
const maxPayload = 16 * 2 ** 20

/** Answers the request with the first protocol of each kind that the client offers. Throws a 400 when there is none. */
export async function upgrade(
  request: UpgradeRequest,
  accepted: { readonly websocket: readonly string[]; readonly spdy: readonly string[] },
): Promise<Upgraded> {
  const { headers } = request.incoming
  const kind = (headers.upgrade ?? '').toLowerCase()
  if (kind === 'websocket') {
    const protocol = pick(headers['sec-websocket-protocol'], accepted.websocket)
    return { kind: 'websocket', webSocket: await acceptWebSocket(request, protocol) }
  }
  if (kind === 'spdy/3.1') {
    const protocol = pick([headers['x-stream-protocol-version'] ?? []].flat().join(), accepted.spdy)
    const answer = [
      'HTTP/1.1 101 Switching Protocols',
      'Connection: Upgrade',
      'Upgrade: SPDY/3.1',
      `X-Stream-Protocol-Version: ${protocol}`,
    ]
    request.socket.write(`${answer.join('\r\n')}\r\n\r\n`)
    return { kind: 'spdy' }
  }
  throw badRequest(`cannot upgrade to ${JSON.stringify(kind)}: it may be websocket or SPDY/3.1`)
}

/** The library refuses a bad handshake by itself; the promise then stays pending, and nothing else holds it. */
async function acceptWebSocket({ incoming, socket, head }: UpgradeRequest, protocol: string): Promise<WebSocket> {
  // Loaded with the first command, which keeps it out of the start of a sandbox.
  const { WebSocketServer } = await import('ws')
  const server = new WebSocketServer({ noServer: true, handleProtocols: () => protocol, maxPayload })
  return new Promise((resolve) => {
    server.handleUpgrade(incoming, socket, head, (webSocket) => {
      // A client that goes away or breaks the protocol ends the connection: listeners get 'close'.
      webSocket.on('error', () => {})
      resolve(webSocket)
    })
  })
}

function pick(header: string | undefined, accepted: readonly string[]): string {
  const offered = (header ?? '').split(',').map((name) => name.trim())
  const found = offered.find((name) => accepted.includes(name))
  if (found !== undefined) return found
  throw badRequest(
    `cannot agree on a protocol: the client offers ${offered.join(', ')}, it may be ${accepted.join(', ')}`,
  )
}
