// Endpoints that fail when they are told to, and an account of what reaches them: many addresses of two pods, one on the node
// under test and one on its peer.

import { createServer, type Server, type Socket } from 'node:net'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import type { Family } from '../../../src/lib/ip.ts'
import { openBoundSocket } from '../../../packages/sandbox/src/netns/sockets.ts'
import { node, peer, pods } from '../addresses.ts'
import type { Netns } from '../netns/netns.ts'
import type { Rig } from '../rig.ts'
import type { Fate } from './history.ts'

export const ENDPOINT_PORT = 7070

const PLACES = {
  local: { pod: 'localC', nodeName: node.name, range: { 4: '10.1.16.0/20', 6: 'fd01:0:0:20::/64' } },
  remote: { pod: 'remoteA', nodeName: peer.name, range: { 4: '10.1.32.0/20', 6: 'fd01:0:0:30::/64' } },
} as const

export type EndpointPlace = keyof typeof PLACES

/** Addresses of each range. Those of histories that have ended are used again. */
const MOST = 3900

const families = [4, 6] as const

/** What reached endpoints so far. */
export interface Arrivals {
  /** Of TCP, each once: `client . port . address of the endpoint`. */
  readonly connections: ReadonlySet<string>
  /** Of UDP, by the address of the endpoint. */
  readonly datagrams: ReadonlyMap<string, number>
}

export class Endpoints implements AsyncDisposable {
  readonly #rig: Rig
  readonly #servers: Server[] = []
  readonly #open = new Set<Socket>()
  #used = 0
  readonly #waiting: { readonly netns: Netns; readonly command: string; readonly done: () => void }[] = []
  #isWriting = false

  private constructor(rig: Rig) {
    this.#rig = rig
  }

  static async open(rig: Rig): Promise<Endpoints> {
    const endpoints = new Endpoints(rig)
    const { network } = rig
    for (const family of families) {
      const [local, remote] = [PLACES.local.range[family], PLACES.remote.range[family]]
      const flag = `-${family}`
      network.node.ip([
        `route add ${local} via ${pods.localC.ip[family]} dev ${node.bridge}`,
        `route add ${remote} via ${peer.ip[family]}`,
      ])
      network.peer.ip([`route add ${remote} via ${pods.remoteA.ip[family]} dev ${node.bridge}`])
      // What comes from a pod of the peer passes the node under test, as what goes there did.
      network.peer.run('ip', [flag, 'route', 'add', 'default', 'via', node.ip[family], 'table', '100'])
      network.peer.run('ip', [flag, 'rule', 'add', 'iif', node.bridge, 'lookup', '100', 'priority', '100'])
      network.pods.localC.ip([`route add local ${local} dev lo`])
      network.pods.remoteA.ip([`route add local ${remote} dev lo`])
    }
    for (const netns of endpoints.#namespaces()) {
      netns.setSysctls({ 'ipv6/ip_nonlocal_bind': 1 })
      netns.run('nft', ['-f', '-'], RULES)
      await endpoints.#serve(netns)
    }
    return endpoints
  }

  /** One that answers, at an address that no other has. */
  async add(place: EndpointPlace, { family, protocol }: { family: Family; protocol: 'TCP' | 'UDP' }) {
    const n = 1 + (this.#used++ % MOST)
    const [high, low] = [Math.floor(n / 250), 1 + (n % 250)]
    const bits = place === 'local' ? 16 : 32
    const address = family === 4 ? `10.1.${bits + high}.${low}` : `fd01:0:0:${bits === 16 ? 20 : 30}::${n.toString(16)}`
    const close = protocol === 'UDP' ? await this.#serveUdp(this.#netnsOf(place), address) : () => {}
    return { address, nodeName: PLACES[place].nodeName, place, close }
  }

  fate(endpoint: { readonly address: string; readonly place: EndpointPlace }, fate: Fate): Promise<void> {
    const { address } = endpoint
    const family = address.includes(':') ? 6 : 4
    const change = (verb: string, set: string) => `${verb} element inet pending ${set}${family} { ${address} }`
    // Added first: nft refuses to delete what is not there.
    const commands = ['silent', 'refuses'].flatMap((set) => [
      change('add', set),
      ...(set === fate ? [] : [change('delete', set)]),
    ])
    const command = commands.join('\n')
    return new Promise((done) => {
      this.#waiting.push({ netns: this.#netnsOf(endpoint.place), command, done })
      void this.#write()
    })
  }

  arrivals(): Arrivals {
    const connections = new Set<string>()
    const datagrams = new Map<string, number>()
    for (const netns of this.#namespaces()) {
      for (const family of families) {
        const syns = netns.run('nft', ['list', 'set', 'inet', 'pending', `syns${family}`])
        for (const [, one = ''] of syns.matchAll(/([\da-f.:]+ \. \d+ \. [\da-f.:]+)/g)) connections.add(one)
        const counts = netns.run('nft', ['list', 'set', 'inet', 'pending', `datagrams${family}`])
        for (const [, address = '', count] of counts.matchAll(/([\da-f.:]+) counter packets (\d+)/g))
          datagrams.set(address, Number(count))
      }
    }
    return { connections, datagrams }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#open) socket.destroy()
    await Promise.all(this.#servers.map((server) => new Promise((resolve) => server.close(resolve))))
  }

  /** Those that come while nft runs wait, and are written together. */
  async #write(): Promise<void> {
    if (this.#isWriting) return
    this.#isWriting = true
    while (this.#waiting.length > 0) {
      const all = this.#waiting.splice(0)
      for (const netns of this.#namespaces()) {
        const mine = all.filter((each) => each.netns === netns)
        if (mine.length > 0) await runNft(netns, mine.map(({ command }) => command).join('\n'))
      }
      for (const { done } of all) done()
    }
    this.#isWriting = false
  }

  #netnsOf(place: EndpointPlace): Netns {
    return this.#rig.network.pods[PLACES[place].pod]
  }

  #namespaces(): Netns[] {
    return (['local', 'remote'] as const).map((place) => this.#netnsOf(place))
  }

  /** Tells the client the address at which it came; what the client ends stays half open. */
  async #serve(netns: Netns): Promise<void> {
    const server = createServer({ noDelay: true, allowHalfOpen: true }, (socket) => {
      this.#open.add(socket)
      socket.on('close', () => this.#open.delete(socket))
      socket.on('error', () => socket.destroy())
      socket.resume()
      socket.write(`${(socket.localAddress ?? '').replace(/^::ffff:/, '')}\n`)
    })
    this.#servers.push(server)
    server.listen({ fd: openBoundSocket(netns, 'tcp', ENDPOINT_PORT), backlog: 4096 })
    await once(server, 'listening')
  }

  async #serveUdp(netns: Netns, address: string): Promise<() => void> {
    const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4')
    socket.on('message', (_, client) => socket.send(address, client.port, client.address, () => {}))
    socket.on('error', () => {})
    const fd = openBoundSocket(netns, 'udp', ENDPOINT_PORT, address)
    await new Promise<void>((resolve) => socket.bind({ fd }, resolve))
    return () => socket.close()
  }
}

async function runNft(netns: Netns, input: string): Promise<void> {
  const child = netns.spawn(['nft', '-f', '-'], { stdio: ['pipe', 'ignore', 'pipe'] })
  let errors = ''
  child.stderr!.on('data', (text: Buffer) => (errors += text.toString()))
  child.stdin!.end(`${input}\n`)
  const [status] = (await once(child, 'close')) as [number | null]
  if (status !== 0) throw new Error(`Cannot change the fates of endpoints: ${errors}`)
}

const types = { 4: ['ip', 'ipv4_addr'], 6: ['ip6', 'ipv6_addr'] } as const

const RULES = `table inet pending {
  chain refuse { meta l4proto tcp reject with tcp reset; reject; }
  ${families
    .map(
      (family) => `
  set silent${family} { type ${types[family][1]}; }
  set refuses${family} { type ${types[family][1]}; }
  set syns${family} { type ${types[family][1]} . inet_service . ${types[family][1]}; flags dynamic; size 1000000; }
  set datagrams${family} { type ${types[family][1]}; flags dynamic; counter; size 65535; }`,
    )
    .join('\n')}
  chain input {
    type filter hook input priority 0;
    ${families
      .map((family) => {
        const [ip] = types[family]
        return `
    tcp dport ${ENDPOINT_PORT} tcp flags & (syn | ack) == syn add @syns${family} { ${ip} saddr . tcp sport . ${ip} daddr }
    udp dport ${ENDPOINT_PORT} add @datagrams${family} { ${ip} daddr }
    meta l4proto { tcp, udp } th dport ${ENDPOINT_PORT} ${ip} daddr @silent${family} drop
    meta l4proto { tcp, udp } th dport ${ENDPOINT_PORT} ${ip} daddr @refuses${family} goto refuse`
      })
      .join('\n')}
  }
}
`
