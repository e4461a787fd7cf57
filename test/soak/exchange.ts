// One question over a TCP connection of its own, from any namespace.

import { Socket } from 'node:net'
import type { NetworkNamespace } from '../../packages/sandbox/src/netns/network-namespace.ts'
import { openClientSocket } from '../../packages/sandbox/src/netns/sockets.ts'

export interface Endpoint {
  readonly host: string
  readonly port: number
}

export interface Answered {
  readonly pod: string
  /** The address that the pod sees. */
  readonly client: string
  readonly tookMs: number
}

/** What became of it; `why` is the errno, or `silent` when nothing came in time. */
export type Exchange = Answered | { readonly why: string }

export function exchange(from: NetworkNamespace, { host, port }: Endpoint, timeoutMs: number): Promise<Exchange> {
  const started = performance.now()
  return new Promise((resolve) => {
    const socket = new Socket({ fd: openClientSocket(from, 'tcp', 4) })
    let text = ''
    const timer = setTimeout(() => finish({ why: 'silent' }), timeoutMs)
    const finish = (result: Exchange) => {
      clearTimeout(timer)
      resolve(result)
      socket.destroy()
    }
    socket.setEncoding('latin1')
    socket.on('data', (part: string) => (text += part))
    socket.on('error', (error: NodeJS.ErrnoException) => finish({ why: error.code ?? error.message }))
    socket.on('close', () => finish({ why: 'closed' }))
    socket.on('end', () => {
      const pod = header(text, 'x-pod')
      if (pod === undefined) finish({ why: text === '' ? 'closed' : 'half an answer' })
      else
        finish({
          pod,
          client: header(text, 'x-client')?.replace(/ port .*/, '') ?? '',
          tookMs: performance.now() - started,
        })
    })
    socket.connect(port, host, () => socket.write('GET / HTTP/1.1\r\nhost: soak\r\nconnection: close\r\n\r\n'))
  })
}

export function header(response: string, name: string): string | undefined {
  return new RegExp(`^${name}: (.*)\r$`, 'im').exec(response)?.[1]
}
