// How a client asks to turn a request into streams: as a WebSocket (kubectl since 1.31), or as SPDY (before).

import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { badRequest } from '../apiserver/api-error.ts'
import { offeredProtocols, WebSocket } from './websocket.ts'

export interface UpgradeRequest {
  readonly incoming: IncomingMessage
  readonly socket: Duplex
  readonly head: Buffer
}

export type Upgraded = { readonly kind: 'websocket'; readonly webSocket: WebSocket } | { readonly kind: 'spdy' }

/** Answers the request with the first protocol of each kind that the client offers. Throws a 400 when there is none. */
export function upgrade(
  { incoming, socket }: UpgradeRequest,
  accepted: { readonly websocket: readonly string[]; readonly spdy: readonly string[] },
): Upgraded {
  const wanted = (incoming.headers.upgrade ?? '').toLowerCase()
  if (wanted === 'websocket') {
    const protocol = pick(offeredProtocols(incoming), accepted.websocket)
    return { kind: 'websocket', webSocket: new WebSocket(socket, incoming, protocol) }
  }
  if (wanted === 'spdy/3.1') {
    const protocol = pick(spdyProtocols(incoming), accepted.spdy)
    const answer = [
      'HTTP/1.1 101 Switching Protocols',
      'Connection: Upgrade',
      'Upgrade: SPDY/3.1',
      `X-Stream-Protocol-Version: ${protocol}`,
    ]
    socket.write(`${answer.join('\r\n')}\r\n\r\n`)
    return { kind: 'spdy' }
  }
  throw badRequest(`cannot upgrade to ${JSON.stringify(wanted)}: it may be websocket or SPDY/3.1`)
}

function spdyProtocols({ headers }: IncomingMessage): string[] {
  return [headers['x-stream-protocol-version'] ?? []]
    .flat()
    .flatMap((value) => value.split(',').map((name) => name.trim()))
}

function pick(offered: readonly string[], accepted: readonly string[]): string {
  const found = offered.find((name) => accepted.includes(name))
  if (found !== undefined) return found
  throw badRequest(
    `cannot agree on a protocol: the client offers ${offered.join(', ')}, it may be ${accepted.join(', ')}`,
  )
}
