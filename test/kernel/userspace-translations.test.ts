// What makes backends see clients ends with the client: real packets, in a network namespace with one node, one backend and
// one client on its loopback link.

import { execFileSync } from 'node:child_process'
import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { mustCall, tryCall } from '../../src/system/libc.ts'
import { unshareNetwork } from '../../src/system/netns.ts'
import { openSocket, shareAddress } from '../../src/data-path/sockets.ts'
import { encodeAddress } from '../../src/system/socket-address.ts'
import { eventually } from '../support/eventually.ts'
import { InlineDataPath } from '../support/inline-data-path.ts'
import { isRoot, nft } from '../support/nft.ts'

const node = '10.9.0.1'
const backendIp = '10.9.1.1'
const client = '10.9.9.1'
const noAffinity = undefined
/** One port, so that the next connection gets the same. */
const ephemeral = { first: 41_000, last: 41_000 }
const PORT = 41_000
const backendPort = 8080
const backends = [{ ip: backendIp, port: backendPort }]

/** Flows from the one port: how the connection tracker would treat the next packet of it. */
function flows(protocol: 'tcp' | 'udp'): string[] {
  const text = execFileSync('conntrack', ['-L', '-p', protocol, '--orig-port-src', `${PORT}`], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  return text.toString().split('\n').filter(Boolean)
}

const noFlows = (protocol: 'tcp' | 'udp') =>
  eventually('the translation is gone', () => (flows(protocol).length === 0 ? undefined : flows(protocol).join()))

/** A backend that notes which addresses it sees. */
class TcpBackend implements AsyncDisposable {
  readonly seen: string[] = []
  readonly sockets: Socket[] = []
  readonly #server: Server

  private constructor(server: Server) {
    this.#server = server
  }

  static async open(onConnection: (socket: Socket) => void): Promise<TcpBackend> {
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
      backend.seen.push(`${socket.remoteAddress}`)
      backend.sockets.push(socket)
      socket.on('error', () => {})
      onConnection(socket)
    })
    const backend = new TcpBackend(server)
    server.listen(backendPort, backendIp)
    await once(server, 'listening')
    expect((server.address() as AddressInfo).port).toBe(backendPort)
    return backend
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.sockets) socket.destroy()
    this.#server.close()
    await once(this.#server, 'close')
  }
}

/** Resolves when a connection is over, however it ended. */
function over(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once('close', () => resolve()))
}

/** Connects as the client does. */
function dial(port: number): Socket {
  const socket = connect({ port, host: node, localAddress: client })
  socket.on('error', () => {})
  return socket
}

/** Another program's connection, from the node and the port that the client was served from. */
function connectFromThatPort(protocol: 'TCP' | 'UDP'): number {
  const fd = openSocket(4, protocol)
  const [from, to] = [encodeAddress(node, PORT), encodeAddress(backendIp, backendPort)]
  shareAddress(fd)
  mustCall('bind', 'bind', fd, from, from.length)
  tryCall('connect', fd, to, to.length)
  return fd
}

describe.skipIf(!isRoot)('a translation of the userspace mode (needs root)', () => {
  let path: InlineDataPath

  beforeAll(() => {
    unshareNetwork()
    execFileSync('ip', ['link', 'set', 'lo', 'up'])
    for (const address of [node, backendIp, client]) execFileSync('ip', ['address', 'add', address, 'dev', 'lo'])
    // Without any such chain the kernel translates nothing, and without any such rule it tracks nothing.
    nft('add table ip nat; add chain ip nat post { type nat hook postrouting priority 100; }')
    nft('add rule ip nat post ct state invalid drop')
  })
  afterEach(() => {
    path[Symbol.dispose]()
    execFileSync('conntrack', ['-F'], { stdio: 'ignore' })
  })

  async function udpBackend(): Promise<{ socket: UdpSocket; seen: string[] }> {
    const seen: string[] = []
    const socket = createSocket('udp4', (data, { address, port }) => {
      seen.push(`${data.toString()} from ${address}`)
      socket.send('ok', port, address)
    })
    socket.bind(backendPort, backendIp)
    await once(socket, 'listening')
    return { socket, seen }
  }

  async function udpClient(port: number, words: string): Promise<UdpSocket> {
    const socket = createSocket('udp4')
    socket.bind(0, client)
    await once(socket, 'listening')
    socket.send(words, port, node)
    await once(socket, 'message')
    return socket
  }

  it('of UDP ends with the session, so that the next program is seen as what it is', async () => {
    path = new InlineDataPath({ udpIdleMs: 100, ephemeral })
    const backend = await udpBackend()
    const listener = path.open(
      { backends, affinitySeconds: noAffinity },
      { protocol: 'UDP', address: node, seenAs: 'client' },
    )
    const socket = await udpClient(listener.port, 'hello')
    expect(backend.seen).toEqual([`hello from ${client}`])
    await eventually('it is over', () => (listener.pool.totals().active === 0 ? undefined : 'active'))
    await noFlows('udp')
    const fd = connectFromThatPort('UDP')
    mustCall('send', 'send', fd, Buffer.from('other'), 5, 0)
    await eventually('it came', () => (backend.seen.length === 2 ? undefined : backend.seen.join()))
    expect(backend.seen[1]).toBe(`other from ${node}`)
    tryCall('close', fd)
    for (const each of [socket, backend.socket]) each.close()
  })

  it('of UDP ends with the process', async () => {
    path = new InlineDataPath({ udpIdleMs: 60_000, ephemeral })
    const backend = await udpBackend()
    const listener = path.open(
      { backends, affinitySeconds: noAffinity },
      { protocol: 'UDP', address: node, seenAs: 'client' },
    )
    const socket = await udpClient(listener.port, 'hello')
    expect(flows('udp')).toHaveLength(1)
    path[Symbol.dispose]()
    expect(flows('udp')).toEqual([])
    for (const each of [socket, backend.socket]) each.close()
  })

  it('of TCP ends with an attempt that came to nothing', async () => {
    path = new InlineDataPath({ ephemeral })
    nft('add table ip hang; add chain ip hang in { type filter hook input priority 0; }')
    nft(`add rule ip hang in tcp dport ${backendPort} drop`)
    const listener = path.open({ backends, affinitySeconds: noAffinity }, { address: node, seenAs: 'client' })
    const socket = dial(listener.port)
    await eventually('it is tried', () => (flows('tcp').length > 0 ? undefined : 'not yet'))
    await over(socket)
    nft('delete table ip hang')
    await noFlows('tcp')
    await using backend = await TcpBackend.open(() => {})
    const fd = connectFromThatPort('TCP')
    await eventually('it came', () => (backend.seen.length > 0 ? undefined : 'not yet'))
    expect(backend.seen).toEqual([node])
    tryCall('close', fd)
  })

  it('of TCP stays until a broken connection has got all that was sent to it, and ends then', async () => {
    path = new InlineDataPath({ ephemeral })
    await using backend = await TcpBackend.open(() => {})
    const listener = path.open({ backends, affinitySeconds: noAffinity }, { address: node, seenAs: 'client' })
    const socket = dial(listener.port)
    const size = 200_000
    socket.write(Buffer.alloc(size))
    await eventually('all is on its way', () => {
      const { bytesToBackends } = listener.pool.totals()
      return bytesToBackends === size ? undefined : `${bytesToBackends}`
    })
    socket.resetAndDestroy()
    await eventually('it is over for us', () => (listener.pool.totals().active === 0 ? undefined : 'active'))
    expect(flows('tcp')).toHaveLength(1)
    // The next client does not get the port, and what is left of the first translation is not taken away.
    const other = dial(listener.port)
    await eventually('another came', () => (backend.seen.length === 2 ? undefined : backend.seen.join()))
    // This machine has both addresses, so the kernel begins at the backend's own.
    expect(backend.seen).toEqual([client, backendIp])
    expect(flows('tcp').filter((flow) => flow.includes(`dst=${client}`))).toHaveLength(1)
    let received = 0
    backend.sockets[0]!.on('data', (data: Buffer) => (received += data.length))
    backend.sockets[0]!.resume()
    await over(backend.sockets[0]!)
    expect(received).toBe(size)
    await noFlows('tcp')
    other.destroy()
  })

  it('of TCP that ended well gives way to the next connection from there', async () => {
    path = new InlineDataPath({ ephemeral })
    await using backend = await TcpBackend.open((socket) => socket.end('bye'))
    const listener = path.open({ backends, affinitySeconds: noAffinity }, { address: node, seenAs: 'client' })
    const socket = dial(listener.port)
    socket.resume()
    await over(socket)
    backend.sockets[0]!.resume()
    await eventually('it is over', () => (listener.pool.totals().active === 0 ? undefined : 'active'))
    let fd = -1
    await eventually('another connection begins there', () => {
      if (fd !== -1) tryCall('close', fd)
      fd = connectFromThatPort('TCP')
      return backend.seen.length === 2 ? undefined : 'not yet'
    })
    expect(backend.seen).toEqual([client, node])
    tryCall('close', fd)
  })
})
