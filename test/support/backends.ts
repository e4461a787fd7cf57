// Backends for the userspace mode that behave, and that misbehave.

import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { mustCall, tryCall } from '../../src/system/libc.ts'
import { countConnections } from './count-connections.ts'
import { encodeAddress } from '../../src/system/socket-address.ts'
import { openSocket } from '../../src/data-path/sockets.ts'

export interface TestBackend extends AsyncDisposable {
  readonly ip: string
  readonly port: number
  /** Connections, or datagrams, that came. */
  readonly seen: number
}

/** Does to each connection what it is told. */
export async function aTcpBackend(
  onConnection: (socket: Socket) => void,
  host = '127.0.0.1',
  port = 0,
): Promise<TestBackend> {
  const connections = countConnections(onConnection)
  const { server } = connections
  server.listen(port, host, 2048)
  await once(server, 'listening')
  return {
    ip: host,
    port: (server.address() as AddressInfo).port,
    get seen() {
      return connections.seen
    },
    [Symbol.asyncDispose]: () => connections[Symbol.asyncDispose](),
  }
}

/** Says its name to each client, sends back what it gets, and ends when the client does. */
export function anEchoBackend(name: string, host = '127.0.0.1', port = 0): Promise<TestBackend> {
  return aTcpBackend(
    (socket) => {
      socket.write(`${name}\n`)
      socket.pipe(socket)
    },
    host,
    port,
  )
}

/** A port at which no server listens. */
export async function aClosedPort(host = '127.0.0.1'): Promise<{ readonly ip: string; readonly port: number }> {
  const backend = await aTcpBackend(() => {}, host)
  await backend[Symbol.asyncDispose]()
  return { ip: backend.ip, port: backend.port }
}

/** Takes part in no handshake: its queue is full. */
export async function aHangingBackend(): Promise<TestBackend> {
  const ip = '127.0.0.1'
  const fd = openSocket(4, 'TCP')
  const address = encodeAddress(ip, 0)
  mustCall('bind', 'bind', fd, address, address.length)
  mustCall('listen', 'listen', fd, 0)
  mustCall('getsockname', 'getsockname', fd, address, new Uint32Array([address.length]))
  const port = (address[2]! << 8) | address[3]!
  const filler = connect(port, ip)
  await once(filler, 'connect')
  return {
    ip,
    port,
    seen: 0,
    async [Symbol.asyncDispose]() {
      filler.destroy()
      tryCall('close', fd)
    },
  }
}

/** Answers each datagram with its name and what it got. */
export async function aUdpBackend(name: string, host = '127.0.0.1', port = 0): Promise<TestBackend> {
  let seen = 0
  const socket = createSocket('udp4')
  socket.on('message', (message, { port, address }) => {
    seen++
    socket.send(Buffer.concat([Buffer.from(`${name} `), message]), port, address)
  })
  socket.bind(port, host)
  await once(socket, 'listening')
  return {
    ip: host,
    port: socket.address().port,
    get seen() {
      return seen
    },
    async [Symbol.asyncDispose]() {
      socket.close()
      await once(socket, 'close')
    },
  }
}
