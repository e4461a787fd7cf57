// What runs in a probe pod: it greets whoever connects, until it is ended.

import { createSocket } from 'node:dgram'
import { createServer } from 'node:net'
import { formatGreeting } from './protocol.ts'

/** Listens on each port by TCP and UDP, on all addresses of both families. Throws when a port is taken. */
export async function serveProbe(pod: string, ports: readonly number[]): Promise<void> {
  for (const port of ports) {
    await listenTcp(`${pod}:${port}`, port)
    await listenUdp(`${pod}:${port}`, port)
  }
}

function listenTcp(endpoint: string, port: number): Promise<void> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.end(formatGreeting(endpoint, socket.remoteAddress))
  })
  return new Promise((resolve, reject) => server.once('error', reject).listen(port, resolve))
}

/** Two sockets: an answer leaves from the address that was asked, which one socket of both families would not see to. */
async function listenUdp(endpoint: string, port: number): Promise<void> {
  const bound = (['udp4', 'udp6'] as const).map((type) => {
    const socket = createSocket({ type, ipv6Only: type === 'udp6' })
    socket.on('message', (_, { address, port: from }) => {
      socket.send(formatGreeting(endpoint, address), from, address, () => {})
    })
    return new Promise<void>((resolve, reject) => {
      socket.once('error', reject)
      socket.bind(port, () => {
        socket.off('error', reject).on('error', () => {})
        resolve()
      })
    })
  })
  // A machine without IPv6 has one of them.
  await Promise.any(bound)
}
