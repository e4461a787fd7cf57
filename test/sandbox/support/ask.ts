// Questions to pods, from anywhere in the sandbox.

import { createSocket } from 'node:dgram'
import { get } from 'node:http'
import { Socket } from 'node:net'
import { patience } from '../../support/patience.ts'
import { openClientSocket } from '../../../packages/sandbox/src/netns/sockets.ts'
import type { NetworkNamespace } from '../../../packages/sandbox/src/netns/network-namespace.ts'

export interface Reply {
  readonly pod: string
  readonly node: string
  /** The address that the pod sees. */
  readonly client: string
  readonly body: string
}

/** What became of a question: a reply, or the errno; `silent` when no answer came in time. */
export type Outcome = Reply | string

/** A lost packet is no silence yet: the kernel sends the first one of a connection again after 1 and 3 seconds. */
function limitMs(): number {
  return 4000 * patience()
}

/** Asks over HTTP, on a connection of its own. */
export function ask(from: NetworkNamespace, host: string, port: number, path = '/'): Promise<Outcome> {
  return new Promise((resolve) => {
    const socket = new Socket({ fd: openClientSocket(from, 'tcp', host.includes(':') ? 6 : 4) })
    const timer = setTimeout(() => finish('silent'), limitMs())
    const finish = (outcome: Outcome) => {
      clearTimeout(timer)
      resolve(outcome)
      socket.destroy()
    }
    const request = get({ host, port, path, createConnection: () => socket.connect(port, host) }, (response) => {
      let body = ''
      response.setEncoding('utf8').on('data', (text: string) => (body += text))
      response.on('end', () => {
        const { 'x-pod': pod = '', 'x-node': node = '', 'x-client': client = '' } = response.headers
        finish({ pod: String(pod), node: String(node), client: String(client).replace(/ port .*/, ''), body })
      })
    })
    request.on('error', (error: NodeJS.ErrnoException) => finish(error.code ?? error.message))
  })
}

/** A datagram that is lost, or comes before the rules do, is lost for good: it is sent again. */
const SEND_AGAIN_MS = 200

/** Sends a datagram from a socket of its own, again and again, and waits for the echo. */
export function askUdp(from: NetworkNamespace, host: string, port: number): Promise<Outcome> {
  const family = host.includes(':') ? 6 : 4
  return new Promise((resolve) => {
    const socket = createSocket(`udp${family}`)
    const timer = setTimeout(() => finish('silent'), limitMs())
    let again: NodeJS.Timeout | undefined
    const finish = (outcome: Outcome) => {
      clearTimeout(timer)
      clearInterval(again)
      resolve(outcome)
      socket.close()
    }
    socket.on('error', (error: NodeJS.ErrnoException) => finish(error.code ?? error.message))
    socket.on('message', (message) => {
      const body = message.toString()
      const [, pod = '', client = ''] = /^\S+ from (\S+)\nclient (\S+) port/.exec(body) ?? []
      finish({ pod, node: '', client, body })
    })
    socket.bind({ fd: openClientSocket(from, 'udp', family) }, () => {
      socket.connect(port, host, () => {
        socket.send('hello')
        again = setInterval(() => socket.send('hello'), SEND_AGAIN_MS)
      })
    })
  })
}
