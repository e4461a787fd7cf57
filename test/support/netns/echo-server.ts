// What runs in a pod: it tells every client who answers and whom it sees.

import { createServer } from 'node:net'
import { createSocket } from 'node:dgram'
import { countResent } from './sockets.ts'
import { openBoundSocket } from '../../../packages/sandbox/src/netns/sockets.ts'
import type { Netns } from './netns.ts'
import type { Socket } from 'node:net'

/** What a server tells a client. */
export interface Greeting {
  /** The name of the host that answers. */
  readonly host: string
  /** The port, and the address, that the connection arrived at. */
  readonly port: number
  readonly at: string
  /** The address and port that the server sees the client at. */
  readonly seenAs: string
  readonly seenPort: number
  /** What the client sent, on answers to something sent. */
  readonly echo?: string
  /** How often the server's kernel had to send something of this connection again; absent for UDP. */
  readonly resent?: number
}

/**
 * Answers on these ports in the namespace, over IPv4 and IPv6. A TCP client is greeted with a line of JSON when it
 * connects and for every line that it sends, a UDP client for every datagram.
 */
export async function serveEcho(
  netns: Netns,
  host: string,
  ports: { readonly tcp: readonly number[]; readonly udp: readonly number[] },
): Promise<AsyncDisposable> {
  const closers = await Promise.all([
    ...ports.tcp.map((port) => serveTcp(netns, host, port)),
    ...ports.udp.map((port) => serveUdp(netns, host, port)),
  ])
  return {
    async [Symbol.asyncDispose]() {
      await Promise.all(closers.map((close) => close()))
    },
  }
}

async function serveTcp(netns: Netns, host: string, port: number): Promise<() => Promise<void>> {
  const open = new Set<Socket>()
  const server = createServer({ noDelay: true }, (socket) => {
    const greeting: Greeting = {
      host,
      port,
      at: plain(socket.localAddress),
      seenAs: plain(socket.remoteAddress),
      seenPort: socket.remotePort ?? 0,
    }
    open.add(socket)
    socket.on('close', () => open.delete(socket))
    socket.on('error', () => socket.destroy())
    onLines(socket, (line) =>
      socket.write(`${JSON.stringify({ ...greeting, echo: line, resent: countResent(fdOf(socket)) })}\n`),
    )
    socket.write(`${JSON.stringify(greeting)}\n`)
  })
  const fd = openBoundSocket(netns, 'tcp', port)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ fd, backlog: 1024 }, resolve)
  })
  return () =>
    new Promise((resolve) => {
      server.close(() => resolve())
      for (const socket of open) socket.resetAndDestroy()
    })
}

/** The same at one address: the kernel chooses that, and no other of the host, as the source of its answers. */
export async function serveUdpAt(netns: Netns, host: string, port: number, address: string): Promise<AsyncDisposable> {
  const close = await serveUdp(netns, host, port, address)
  return { [Symbol.asyncDispose]: close }
}

async function serveUdp(netns: Netns, host: string, port: number, address?: string): Promise<() => Promise<void>> {
  const socket = createSocket(address === undefined || address.includes(':') ? 'udp6' : 'udp4')
  socket.on('message', (message, client) => {
    const greeting: Greeting = {
      host,
      port,
      at: '',
      seenAs: plain(client.address),
      seenPort: client.port,
      echo: message.toString(),
    }
    socket.send(JSON.stringify(greeting), client.port, client.address, () => {})
  })
  // A client that is gone is no concern of the server.
  socket.on('error', () => {})
  const fd = openBoundSocket(netns, 'udp', port, address)
  await new Promise<void>((resolve) => socket.bind({ fd }, resolve))
  return () => new Promise((resolve) => socket.close(() => resolve()))
}

/** Calls back for every line that arrives. */
export function onLines(socket: Socket, take: (line: string) => void): void {
  let rest = ''
  socket.setEncoding('utf8')
  socket.on('data', (text: string) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) take(line)
  })
}

/** Node does not tell, but has it. */
function fdOf(socket: Socket): number {
  return (socket as unknown as { _handle: { fd: number } })._handle.fd
}

function plain(address: string | undefined): string {
  return (address ?? '').replace(/^::ffff:/, '')
}
