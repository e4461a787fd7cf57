// The programs at connect() in this kernel, with sockets of this process, in a network namespace and a cgroup of its own.

import { createSocket, type RemoteInfo, type Socket as UdpSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect, createServer, type Server } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { HashMap } from '../../src/bpf/hash-map.ts'
import { findCgroup } from '../../src/connect/cgroup.ts'
import { Conntrack } from '../../src/conntrack/driver.ts'
import { probeSockets } from '../../src/connect/probe.ts'
import { SocketBalancing } from '../../src/connect/socket-balancing.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { type Family, bytesOf } from '../../src/lib/ip.ts'
import { silentLogger } from '../../src/lib/log.ts'
import { atOnce } from '../../src/lib/steps.ts'
import type { ServicePortView } from '../../src/model/types.ts'
import { mustCall, tryCall } from '../../src/system/libc.ts'
import { addressFamily, encodeAddress } from '../../src/system/socket-address.ts'
import { aNodeView } from '../support/arbitrary-views.ts'
import { Cgroup, cgroupRoot, whyNoCgroup } from '../support/cgroup.ts'
import { aClusterIpView, backendPort as PORT } from '../support/cluster-ip-view.ts'
import { eventually } from '../support/eventually.ts'
import { openNetns, restIn } from '../support/netns/netns.ts'

const nodes = { 4: aNodeView({ family: 4, nodePortAddresses: { kind: 'all' } }), 6: aNodeView({ family: 6 }) }
const why = whyNoCgroup()

if (why !== undefined) it('connect()', ({ skip }) => skip(why))

describe.skipIf(why !== undefined)('connect()', () => {
  let cgroup: Cgroup
  let server: Server
  const udpServers: UdpSocket[] = []
  let inNamespace: Disposable
  const counts = new Map<Family, number>()
  let all: readonly ServicePortView[] = []
  let machineAddresses: readonly string[] = []

  beforeAll(async () => {
    const netns = openNetns('socket-balancing')
    inNamespace = restIn(netns)
    netns.ip(['link set lo up', 'route add local 10.0.0.0/8 dev lo', 'route add local fd00::/16 dev lo'])
    cgroup = new Cgroup(`kube-proxy-ts-kernel-${process.pid}`)
    cgroup.enter()
    server = createServer((socket) => socket.on('error', () => {}).end(socket.localAddress ?? '')).listen(PORT, '::')
    await once(server, 'listening')
    for (const [i, address] of ['10.1.0.1', '10.1.0.2', '10.1.0.3', '10.96.0.2', 'fd00::7', 'fd00::8'].entries()) {
      if (address.includes(':')) netns.ip([`addr add ${address}/128 dev lo nodad`])
      const udpServer = createSocket(address.includes(':') ? 'udp6' : 'udp4')
      const answer = (to: RemoteInfo) => udpServer.send(address, to.port, to.address)
      udpServer.on('message', (text, from) => {
        if (text.toString() === 'later') setTimeout(answer, 150, from)
        else answer(from)
      })
      udpServer.bind(PORT, address)
      await once(udpServer, 'listening')
      udpServers[i] = udpServer
    }
  })

  afterAll(async () => {
    server.close()
    for (const udpServer of udpServers) udpServer.close()
    cgroup.leave()
    cgroup[Symbol.dispose]()
    inNamespace[Symbol.dispose]()
  })

  function open(folder = cgroup.folder): SocketBalancing {
    const choice = new SocketBalancing({
      scope: folder,
      machineAddresses: () => machineAddresses,
      opensLoopback: true,
      families: [4, 6],
      views: () => all,
      onFailed: () => {},
      onMended: () => {},
      onFrontends: (family, count) => counts.set(family, count),
      clock: systemClock,
      log: silentLogger,
    })
    onTestFinished(() => choice.close())
    return choice
  }

  it('goes to each endpoint now and then, and says what was dialled', async () => {
    const choice = open()
    await follow(choice, 4, [aView(1, ['10.1.0.1', '10.1.0.2', '10.1.0.3'])])
    const seen = new Set<string>()
    for (let i = 0; i < 100; i++) {
      const { at, peer } = await dial('10.96.0.1', 80)
      expect(peer).toBe('10.96.0.1:80')
      seen.add(at)
    }
    expect([...seen].sort()).toEqual(['10.1.0.1', '10.1.0.2', '10.1.0.3'].map(mapped))
  })

  it('does so for IPv6, and for IPv4 addresses of IPv6 sockets', async () => {
    const choice = open()
    await follow(choice, 4, [aView(1, ['10.1.0.1'])])
    await follow(choice, 6, [aClusterIpView('fd00:96::1', ['fd00::7'])])
    expect(await dial('fd00:96::1', 80)).toEqual({ at: 'fd00::7', peer: 'fd00:96::1:80' })
    expect(await dial('::ffff:10.96.0.1', 80)).toEqual({ at: mapped('10.1.0.1'), peer: '::ffff:10.96.0.1:80' })
  })

  it('serves node ports on addresses of the node, and on loopback', async () => {
    const choice = open()
    const view = aView(1, ['10.1.0.1'])
    const [frontend] = view.frontends
    machineAddresses = ['10.0.0.1']
    onTestFinished(() => void (machineAddresses = []))
    const nodePort = { ...frontend!, kind: 'nodePort', address: undefined, port: 30080 } as const
    await follow(choice, 4, [{ ...view, frontends: [nodePort] }])
    const at = mapped('10.1.0.1')
    expect(await dial('10.0.0.1', 30080)).toEqual({ at, peer: '10.0.0.1:30080' })
    expect(await dial('::ffff:10.0.0.1', 30080)).toEqual({ at, peer: '::ffff:10.0.0.1:30080' })
    expect(await dial('127.0.0.1', 30080)).toEqual({ at, peer: '127.0.0.1:30080' })
    await expect(dial('10.0.0.2', 30080)).rejects.toThrow('ECONNREFUSED')
    machineAddresses = ['10.0.0.2']
    choice.addressesChanged()
    await eventually('the other address is there', () => dial('10.0.0.2', 30080).then(() => undefined, String))
    await expect(dial('10.0.0.1', 30080)).rejects.toThrow('ECONNREFUSED')
  })

  it('leaves other addresses, ports and protocols alone', async () => {
    const choice = open()
    await follow(choice, 4, [aView(1, ['10.1.0.1'])])
    expect(await dial('10.96.0.1', PORT)).toEqual({ at: mapped('10.96.0.1'), peer: '10.96.0.1:8080' })
    expect(peerOfUdp('10.96.0.1', 80)).toBe('10.96.0.1')
  })

  it.for([4, 6] as const)(
    'leads datagrams to endpoints, and shows answers as those of the frontend, over IPv%d',
    async (family) => {
      const choice = open()
      const [vip, hosts] =
        family === 4 ? ['10.96.0.1', ['10.1.0.1', '10.1.0.2']] : ['fd00:96::1', ['fd00::7', 'fd00::8']]
      const view = udp(aClusterIpView(vip, hosts))
      await follow(choice, family, [view])
      const seen = new Map<string, UdpClient>()
      for (let i = 0; i < 50; i++) {
        const client = new UdpClient(family)
        const [at, ...others] = await client.ask(vip, 80, 4)
        expect(others).toEqual([at, at, at])
        seen.set(at!, client)
      }
      expect([...seen.keys()].sort()).toEqual(hosts.map((host) => `${host} from ${vip}:80`))
      // The flow goes elsewhere with the first datagram after its endpoint has gone, and stays where it was when it has not.
      const after = udp(aClusterIpView(vip, [hosts[1]!]))
      choice.follow(nodes[family], [{ name: view.name, before: view, after }])
      await eventually('the maps know it', async () => {
        const [at] = await new UdpClient(family).ask(vip, 80, 1)
        return at!.startsWith(hosts[1]!) ? undefined : at
      })
      for (const client of seen.values()) {
        // Whichever one it had: now it has the one that is left.
        const answers = await client.ask(vip, 80, 2)
        expect(answers).toEqual([`${hosts[1]} from ${vip}:80`, `${hosts[1]} from ${vip}:80`])
      }
    },
  )

  it('does so for IPv4 addresses of IPv6 sockets, and leaves connected sockets and a second flow to the same endpoint alone', async () => {
    const choice = open()
    await follow(choice, 4, [udp(aView(1, ['10.1.0.1'])), udp(aView(2, ['10.1.0.1'])), udp(aView(3, ['10.1.0.3']))])
    const dual = new UdpClient(6)
    expect(await dual.ask('::ffff:10.96.0.1', 80, 1)).toEqual(['10.1.0.1 from ::ffff:10.96.0.1:80'])
    const client = new UdpClient(4)
    expect(await client.ask('10.96.0.1', 80, 1)).toEqual(['10.1.0.1 from 10.96.0.1:80'])
    expect(await client.ask('10.96.0.3', 80, 1)).toEqual(['10.1.0.3 from 10.96.0.3:80'])
    // Nobody listens at the address of the service itself: that is where it goes without rules.
    expect(await client.ask('10.96.0.2', 80, 1, 200)).toEqual(['nothing'])
    expect(await client.ask('10.96.0.2', PORT, 1)).toEqual(['10.96.0.2 from 10.96.0.2:8080'])
    expect(peerOfUdp('10.96.0.1', 80)).toBe('10.96.0.1')
  })

  it('shows an answer that is under way as that of the frontend when it is closed meanwhile', async () => {
    const choice = open()
    await follow(choice, 4, [udp(aView(1, ['10.1.0.1']))])
    const client = new UdpClient(4)
    const answer = client.ask('10.96.0.1', 80, 1, 5000, 'later')
    await sleep(50)
    await choice.close()
    expect(await answer).toEqual(['10.1.0.1 from 10.96.0.1:80'])
    expect(await new UdpClient(4).ask('10.96.0.1', 80, 1, 200)).toEqual(['nothing'])
  })

  it('counts connections, and flows of UDP, by frontend and endpoint', async () => {
    const choice = open()
    await follow(choice, 4, [aView(1, ['10.1.0.1']), udp(aView(2, ['10.1.0.3']))])
    await follow(choice, 6, [aClusterIpView('fd00:96::1', ['fd00::7'])])
    expect(await choice.counts(4)).toEqual([])
    for (let i = 0; i < 3; i++) await dial(i === 0 ? '::ffff:10.96.0.1' : '10.96.0.1', 80)
    await dial('fd00:96::1', 80)
    for (let i = 0; i < 2; i++) await new UdpClient(4).ask('10.96.0.2', 80, 5)
    const at = (address: string, port: number) => ({ address, port })
    expect((await choice.counts(4)).toSorted((a, b) => b.count - a.count)).toEqual([
      { protocol: 'TCP', frontend: at('10.96.0.1', 80), backend: at('10.1.0.1', PORT), count: 3 },
      { protocol: 'UDP', frontend: at('10.96.0.2', 80), backend: at('10.1.0.3', PORT), count: 2 },
    ])
    expect(await choice.counts(6)).toEqual([
      { protocol: 'TCP', frontend: at('fd00:96::1', 80), backend: at('fd00::7', PORT), count: 1 },
    ])
  })

  it('tells the truth of a socket that was connected again, elsewhere', async () => {
    const choice = open()
    await follow(choice, 4, [aView(1, ['10.1.0.1'])])
    const AF_UNSPEC = new Uint8Array(16)
    const fd = mustCall('open a socket', 'socket', addressFamily(4), 1, 0)
    const [service, endpoint] = [encodeAddress('10.96.0.1', 80), encodeAddress('10.1.0.2', PORT)]
    mustCall('connect', 'connect', fd, service, service.length)
    expect(peerOf(fd)).toEqual(Array.from(service.slice(0, 8)))
    mustCall('disconnect', 'connect', fd, AF_UNSPEC, AF_UNSPEC.length)
    mustCall('connect', 'connect', fd, endpoint, endpoint.length)
    expect(peerOf(fd)).toEqual(Array.from(endpoint.slice(0, 8)))
    tryCall('close', fd)
  })

  it('follows changes, and grows with them', async () => {
    const choice = open()
    const first = aView(1, ['10.1.0.1', '10.1.0.2'])
    await follow(choice, 4, [first])
    const next = aView(1, ['10.1.0.2'])
    change(choice, [{ name: first.name, before: first, after: next }])
    for (let i = 0; i < 20; i++) expect((await dial('10.96.0.1', 80)).at).toBe(mapped('10.1.0.2'))
    // More than the map had room for.
    const many = Array.from({ length: 3000 }, (_, i) => aView(i + 2, ['10.1.0.5', '10.1.0.6']))
    change(
      choice,
      many.map((after) => ({ name: after.name, before: undefined, after })),
    )
    await eventually('all are in the map', () => (counts.get(4) === 3001 ? undefined : String(counts.get(4))))
    expect((await dial('10.96.11.185', 80)).at).toMatch(/10\.1\.0\.[56]$/)
    expect((await dial('10.96.0.1', 80)).at).toBe(mapped('10.1.0.2'))
    change(choice, [{ name: next.name, before: next, after: undefined }])
    await expect(dial('10.96.0.1', 80)).rejects.toThrow('ECONNREFUSED')
  })

  it('follows several changes at once', async () => {
    const choice = open()
    const [one, two] = [aView(1, ['10.1.0.1']), aView(2, ['10.1.0.2'])]
    await follow(choice, 4, [one, two])
    change(choice, [
      { name: one.name, before: one, after: aView(1, ['10.1.0.3']) },
      { name: two.name, before: two, after: undefined },
    ])
    await eventually('one is left', () => (counts.get(4) === 1 ? undefined : String(counts.get(4))))
    expect((await dial('10.96.0.1', 80)).at).toBe(mapped('10.1.0.3'))
    await expect(dial('10.96.0.2', 80)).rejects.toThrow('ECONNREFUSED')
  })

  it('is as it was when it is closed, or when its cgroup is not there', async () => {
    const choice = open()
    await follow(choice, 4, [aView(1, ['10.1.0.1'])])
    expect(choice.status()).toBe(
      `Socket balancing: for ${cgroup.folder}, cgroup ${cgroup.folder}, frontends: IPv4=1 IPv6=0, of TCP, and of UDP without connect()`,
    )
    await choice.close()
    await expect(dial('10.96.0.1', 80)).rejects.toThrow('ECONNREFUSED')
    const other = open('/sys/fs/cgroup/not-there')
    all = [aView(1, ['10.1.0.1'])]
    other.follow(nodes[4], [])
    const problem = 'Socket balancing: not for /sys/fs/cgroup/not-there: There is no cgroup /sys/fs/cgroup/not-there'
    await eventually('it says so', () => (other.status() === problem ? undefined : other.status()))
  })

  it('looks for few of the calls that never arrive, however many a pod makes', async () => {
    const choice = open()
    const sticky = Array.from({ length: 500 }, (_, i) => withAffinity(aView(i + 1, ['10.1.0.1'])))
    await follow(choice, 4, sticky)
    // Nothing tracks connections in this namespace.
    const lookUp = vi.spyOn(Conntrack.prototype, 'lookUp')
    onTestFinished(() => lookUp.mockRestore())
    for (let round = 0; round < 4; round++) for (const { frontends } of sticky) begin(frontends[0]!.address!, 80)
    const startMs = performance.now()
    // Those that are left out are taken when they come again.
    await eventually('another is looked for', () => {
      begin('10.96.0.201', 80)
      const asked = lookUp.mock.calls.map(([, , side]) => ('original' in side ? side.original.dst : ''))
      return asked.includes('10.96.0.201') ? undefined : `only ${asked.join(' ')}`
    })
    // Ten times in a second, sixteen of a namespace.
    expect(lookUp.mock.calls.length).toBeLessThanOrEqual(16 * ((performance.now() - startMs) / 100 + 2))
  })

  it('is known to be possible, or not, before', () => {
    expect(probeSockets(cgroup.folder, [4, 6])).toEqual({ kind: 'can choose', cgroup: cgroup.folder })
    expect(probeSockets('/sys/fs/cgroup/not-there', [4])).toEqual({
      kind: 'cannot choose',
      why: 'There is no cgroup /sys/fs/cgroup/not-there',
    })
  })

  it('knows the cgroup of every process', () => {
    expect(findCgroup('all')).toBe(cgroupRoot())
  })

  async function follow(choice: SocketBalancing, family: Family, views: readonly ServicePortView[]): Promise<void> {
    counts.clear()
    all = views
    choice.follow(nodes[family], [])
    await eventually('the map is filled', () => (counts.get(family) === views.length ? undefined : 'not yet'))
  }
})

describe('HashMap', () => {
  const options = { name: 'kube_test', keyLength: 4, valueLength: 4, memory: 'as needed' } as const
  const element = (i: number) => [bytesOf(i & 0xff, i >> 8, 0, 0), bytesOf(1, 0, 0, 0)] as const
  const elements = Array.from({ length: 10_000 }, (_, i) => element(i))

  it('says when it is full, and has all of it when it has grown', () => {
    const small = new HashMap({ ...options, capacity: 8000 })
    expect(atOnce(small.put(elements))).toBe(false)
    const large = atOnce(small.grown(20_000))
    small.close()
    expect(atOnce(large.put(elements))).toBe(true)
    const largest = atOnce(large.grown(30_000))
    // It has no more: of twice as many, it can take just so many more.
    const more = Array.from({ length: 20_000 }, (_, i) => element(10_000 + i))
    expect(atOnce(largest.put(more))).toBe(true)
    large.close()
    largest.close()
  })

  it('deletes what is there, past what is not', () => {
    const map = new HashMap({ ...options, capacity: 10_000 })
    atOnce(map.put(elements.filter((_, i) => i % 3 > 0)))
    atOnce(map.delete(elements.slice(0, 9000).map(([key]) => key)))
    // What is left is a third less than the last thousand.
    expect(atOnce(map.put(Array.from({ length: 9334 }, (_, i) => element(20_000 + i))))).toBe(true)
    expect(atOnce(map.put([element(50_000)]))).toBe(false)
    map.close()
  })
})

function change(choice: SocketBalancing, changes: Parameters<SocketBalancing['follow']>[1]): void {
  choice.follow(nodes[4], changes)
}

function udp(view: ServicePortView): ServicePortView {
  return { ...view, protocol: 'UDP', frontends: view.frontends.map((each) => ({ ...each, protocol: 'UDP' })) }
}

/** A socket that sends without connect(). It goes with its test. */
class UdpClient {
  readonly #socket: UdpSocket
  readonly #answers: string[] = []

  constructor(family: Family) {
    this.#socket = createSocket({ type: `udp${family}` })
    this.#socket.on('message', (text, { address, port }) => {
      this.#answers.push(`${text.toString()} from ${address}:${port}`)
    })
    onTestFinished(() => void this.#socket.close())
  }

  /** What comes back of some datagrams, one after the other. */
  async ask(address: string, port: number, times: number, withinMs = 5000, text = '?'): Promise<string[]> {
    const answers: string[] = []
    for (let i = 0; i < times; i++) {
      this.#socket.send(text, port, address)
      const endMs = performance.now() + withinMs
      while (this.#answers.length === 0 && performance.now() < endMs) await sleep(1)
      answers.push(this.#answers.shift() ?? 'nothing')
    }
    return answers
  }
}

function withAffinity(view: ServicePortView): ServicePortView {
  return { ...view, frontends: view.frontends.map((frontend) => ({ ...frontend, affinitySeconds: 10_800 })) }
}

/** Begins a connection, and gives it up at once. */
function begin(host: string, port: number): void {
  const SOCK_STREAM_NONBLOCK = 1 | 0o4000
  const fd = mustCall('open a socket', 'socket', addressFamily(4), SOCK_STREAM_NONBLOCK, 0)
  const address = encodeAddress(host, port)
  tryCall('connect', fd, address, address.length)
  tryCall('close', fd)
}

/** A service port by number, at 10.96.0.0/16. */
function aView(index: number, hosts: readonly string[]): ServicePortView {
  return aClusterIpView(`10.96.${index >> 8}.${index & 0xff}`, hosts)
}

const mapped = (ip: string) => `::ffff:${ip}`

/** Where a connection ends up, and what its client takes it for. */
async function dial(host: string, port: number): Promise<{ at: string; peer: string }> {
  const socket = connect({ host, port })
  await once(socket, 'connect')
  const peer = `${socket.remoteAddress}:${socket.remotePort}`
  const parts: Buffer[] = []
  for await (const part of socket) parts.push(part as Buffer)
  return { at: Buffer.concat(parts).toString(), peer }
}

function peerOfUdp(host: string, port: number): string {
  const fd = mustCall('open a socket', 'socket', addressFamily(4), 2, 0)
  const address = encodeAddress(host, port)
  mustCall('connect', 'connect', fd, address, address.length)
  const peer = peerOf(fd)
  tryCall('close', fd)
  return peer.slice(4, 8).join('.')
}

/** Family, port and address of struct sockaddr_in. */
function peerOf(fd: number): number[] {
  const peer = new Uint8Array(16)
  mustCall('ask for the peer', 'getpeername', fd, peer, Uint32Array.of(16))
  return Array.from(peer.slice(0, 8))
}
