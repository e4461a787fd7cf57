// TCP servers and clients of a test that says itself what they do.

import { createHash, type Hash } from 'node:crypto'
import { once } from 'node:events'
import { Socket } from 'node:net'
import { countConnections } from '../count-connections.ts'
import { openBoundSocket } from '../../../packages/sandbox/src/netns/sockets.ts'
import { openClient } from './sockets.ts'
import type { Netns } from './netns.ts'
import type { Target } from './probe.ts'

export interface StreamServer extends AsyncDisposable {
  /** Connections that came. */
  readonly seen: number
}

/** Listens on a port in the namespace, over IPv4 and IPv6. What is done to each connection is up to the caller. */
export async function serveStreams(
  netns: Netns,
  port: number,
  onConnection: (socket: Socket) => void,
): Promise<StreamServer> {
  const connections = countConnections(onConnection)
  connections.server.listen({ fd: openBoundSocket(netns, 'tcp', port), backlog: 4096 })
  await once(connections.server, 'listening')
  return connections
}

/** Sends back what it gets, and ends when its client does. */
export function mirror(socket: Socket): void {
  socket.pipe(socket)
}

/** Dials from the namespace. The socket stays half open when the other side ends. */
export function dialFrom(netns: Netns, to: Target, from?: string): Socket {
  const fd = openClient(netns, 'tcp', to, { ip: from })
  const socket = new Socket({ fd, readable: true, writable: true, allowHalfOpen: true })
  socket.setNoDelay(true)
  // A test that wants to know listens as well.
  socket.on('error', () => {})
  return socket.connect({ host: to.address, port: to.port })
}

/** What came over a connection, and how it ended: '' when it ended well. */
export interface Ending {
  readonly length: number
  readonly sha256: string
  readonly code: string
}

/** Reads until the connection, or its other direction, ends. */
export async function readAll(socket: Socket): Promise<Ending> {
  const hash: Hash = createHash('sha256')
  let [length, code] = [0, '']
  socket.on('data', (data: Buffer) => {
    hash.update(data)
    length += data.length
  })
  socket.on('error', (error: NodeJS.ErrnoException) => (code = error.code ?? error.message))
  await new Promise<void>((resolve) => {
    socket.once('end', resolve)
    socket.once('close', () => resolve())
  })
  return { length, sha256: hash.digest('hex'), code }
}

/** Writes so many bytes, made of the given ones, no faster than they are taken, and ends. Gives their checksum. */
export async function writeAll(socket: Socket, bytes: Buffer, length: number): Promise<string> {
  const hash = createHash('sha256')
  const closed = new Promise((resolve) => socket.once('close', resolve))
  for (let left = length; left > 0 && !socket.destroyed; left -= bytes.length) {
    const part = left >= bytes.length ? bytes : bytes.subarray(0, left)
    hash.update(part)
    if (!socket.write(part)) await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), closed])
  }
  socket.end()
  return hash.digest('hex')
}

export function sha256(...parts: readonly Buffer[]): string {
  return parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest('hex')
}
