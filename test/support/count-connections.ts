// A TCP server that does to each connection what it is told, counts them, and takes them down with itself.

import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'

export interface CountingServer extends AsyncDisposable {
  /** Not listening yet. */
  readonly server: Server
  /** Connections that came. */
  readonly seen: number
}

export function countConnections(onConnection: (socket: Socket) => void): CountingServer {
  const open = new Set<Socket>()
  let seen = 0
  const server = createServer({ noDelay: true, allowHalfOpen: true }, (socket) => {
    seen++
    open.add(socket)
    socket.on('close', () => open.delete(socket))
    socket.on('error', () => socket.destroy())
    onConnection(socket)
  })
  return {
    server,
    get seen() {
      return seen
    },
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
