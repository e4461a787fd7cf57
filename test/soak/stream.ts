// A TCP connection that stays open: the pod says a line every second.

import { Socket } from 'node:net'
import type { NetworkNamespace } from '../../packages/sandbox/src/netns/network-namespace.ts'
import { openClientSocket } from '../../packages/sandbox/src/netns/sockets.ts'
import { header, type Endpoint } from './exchange.ts'

export interface StreamEnd {
  /** The pod that it led to, where one answered. */
  readonly pod: string | undefined
  /** Nothing when the client hung up because it was told to. */
  readonly why: string | undefined
  readonly lastHeardMs: number
}

export interface StreamOptions {
  /** So long without a line is a loss. */
  readonly silenceMs: number
  /** After so long the client hangs up, or when it is told to. */
  readonly lifeMs: number
  readonly signal: AbortSignal
}

export function openStream(
  from: NetworkNamespace,
  { host, port }: Endpoint,
  options: StreamOptions,
): Promise<StreamEnd> {
  const { silenceMs, lifeMs, signal } = options
  return new Promise((resolve) => {
    const socket = new Socket({ fd: openClientSocket(from, 'tcp', 4) })
    let pod: string | undefined
    let lastHeardMs = performance.now()
    const hangUp = () => finish(undefined)
    const life = setTimeout(hangUp, lifeMs)
    const finish = (why: string | undefined) => {
      clearTimeout(life)
      signal.removeEventListener('abort', hangUp)
      resolve({ pod, why, lastHeardMs })
      socket.destroy()
    }
    socket.setEncoding('latin1')
    socket.setTimeout(silenceMs, () => finish('silent'))
    socket.on('data', (text: string) => {
      lastHeardMs = performance.now()
      pod ??= header(text, 'x-pod')
    })
    socket.on('error', (error: NodeJS.ErrnoException) => finish(error.code ?? error.message))
    socket.on('close', () => finish('closed'))
    socket.on('end', () => finish('closed'))
    signal.addEventListener('abort', hangUp)
    if (signal.aborted) return hangUp()
    socket.connect(port, host, () => socket.write('GET /stream HTTP/1.1\r\nhost: soak\r\n\r\n'))
  })
}
