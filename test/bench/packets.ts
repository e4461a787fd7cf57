// What a packet pays: connect() and bytes through a service, beside the same without one and beside kube-proxy's rules.
//   [GO_KUBE_PROXY=/path/to/kube-proxy] npm run bench:packets -- [--batches 30] [--within 120] [services ...]
//
// Each kind of rules has a network namespace of its own, and one thread goes from one to the next and back, a hundred connections
// at a time: A B C, A B C. Client, server and kernel work on that thread, and the figure is its CPU time: other work on the machine
// is not in it. kube-proxy's rules are its own, written by it; without GO_KUBE_PROXY they are left out.

import { execFileSync, fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import net from 'node:net'
import { parseArgs } from 'node:util'
import { boundCall, lastErrno, mustCall } from '../../src/system/libc.ts'
import { enterNetworkFd, unshareNetwork } from '../../src/system/netns.ts'
import { ADDRESS_LENGTH, addressFamily, encodeAddress, familyOf } from '../../src/system/socket-address.ts'
import { openApi } from './beside-api.ts'
import { Contestant, shippedProgram } from './beside-contestant.ts'
import { median, table } from './figures.ts'
import { targets, type Target, packetCluster } from './packets-cluster.ts'

const CONNECTS = 100
const PIECE = 1 << 16
const PIECES = 200
const O_CLOEXEC = 0o2000000
const SOCK_STREAM = 1
const SOCK_NONBLOCK = 0o4000
const SOL_SOCKET = 1
const SO_LINGER = 13
const SO_SNDTIMEO = 21
/** One second. */
const patience = BigUint64Array.of(1n, 0n)
const CLOCK_THREAD_CPUTIME_ID = 3

const time = new BigUint64Array(2)
const clockGettime = boundCall('clock_gettime')
function cpuNs(): number {
  clockGettime(CLOCK_THREAD_CPUTIME_ID, time)
  return Number(time[0]) * 1e9 + Number(time[1])
}

/** A network namespace with endpoints that listen, and the rules of one kind. */
class Place {
  readonly name: string
  readonly #fd: number
  readonly #listeners = new Map<number, number>()
  #proxy: Contestant | undefined
  #api: ChildProcess | undefined

  private constructor(name: string) {
    this.name = name
    unshareNetwork()
    this.#fd = mustCall('open a network namespace', 'open', '/proc/thread-self/ns/net', O_CLOEXEC)
    const routes = [
      'link set lo up',
      'address add 10.255.255.1/32 dev lo',
      'address add fd00:10:ffff::1/128 dev lo nodad',
      'route add local 10.0.0.0/8 dev lo',
      'route add local fd00:10::/32 dev lo',
      'route add 172.16.0.0/12 dev lo src 10.255.255.1',
      'route add fd00:172::/32 dev lo src fd00:10:ffff::1',
    ]
    execFileSync('ip', ['-batch', '-'], { input: routes.join('\n') })
    for (const family of [4, 6] as const) this.#listeners.set(family, listen(family))
  }

  static withRules(name: string, rules: string): Place {
    const place = new Place(name)
    execFileSync('nft', ['-f', '-'], { input: rules })
    return place
  }

  static async withProxy(name: string, program: string, mode: string, services: number): Promise<Place | undefined> {
    const place = new Place(name)
    const api = fork(new URL(import.meta.url), ['serve', String(services)])
    const [kubeconfig] = (await once(api, 'message')) as [string]
    place.#api = api
    place.#proxy = new Contestant(program, mode, kubeconfig, ['--cluster-cidr=10.0.0.0/8,fd00:10::/32'])
    const endMs = Date.now() + withinMs
    for (const target of targets(services)) {
      while (!(await place.#answers(target))) {
        if (place.#proxy.ended !== undefined) throw new Error(`Cannot measure ${name}: ${place.#proxy.ended}`)
        if (Date.now() > endMs) {
          console.error(`${services} services, ${name}: ${target.kind} not live within ${withinMs / 1000} s`)
          await place.close()
          return undefined
        }
      }
    }
    return place
  }

  enter(): void {
    enterNetworkFd(this.#fd, this.name)
  }

  /** Nanoseconds of connect() to this address, on average; undefined when one of them failed. */
  connect(ip: string, port: number): number | undefined {
    this.enter()
    const address = encodeAddress(ip, port)
    const [socket, connect, , close, setsockopt] = calls
    const family = familyOf(address)
    const listener = this.#listeners.get(family)!
    const linger = Uint32Array.of(1, 0)
    let sum = 0
    for (let i = 0; i < CONNECTS; i++) {
      const client = socket(addressFamily(family), SOCK_STREAM, 0)
      setsockopt(client, SOL_SOCKET, SO_LINGER, linger, 8)
      setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, patience, 16)
      const startNs = cpuNs()
      const result = connect(client, address, address.length)
      sum += cpuNs() - startNs
      if (result !== 0) {
        console.error(`Cannot connect to ${ip}:${port} in ${this.name}: ${lastErrno()}`)
        close(client)
        return undefined
      }
      close(accepted(listener))
      close(client)
    }
    return sum / CONNECTS
  }

  /** Nanoseconds per MB, sent and received. */
  transfer(ip: string, port: number): number {
    this.enter()
    const address = encodeAddress(ip, port)
    const family = familyOf(address)
    const [socket, connect, , close] = calls
    const client = socket(addressFamily(family), SOCK_STREAM, 0)
    if (connect(client, address, address.length) !== 0) throw new Error(`Cannot connect to ${ip}:${port}`)
    const server = accepted(this.#listeners.get(family)!)
    const startNs = cpuNs()
    for (let i = 0; i < PIECES; i++) {
      for (let sent = 0, got = 0; got < PIECE;) {
        if (sent < PIECE) sent += send(client, bytes, PIECE - sent, 0)
        got += recv(server, bytes, PIECE, 0)
      }
    }
    const spentNs = cpuNs() - startNs
    close(server)
    close(client)
    return spentNs / ((PIECE * PIECES) / 1e6)
  }

  async close(): Promise<void> {
    this.enter()
    await this.#proxy?.[Symbol.asyncDispose]()
    this.#api?.kill()
    for (const listener of this.#listeners.values()) calls[3](listener)
    calls[3](this.#fd)
  }

  async #answers({ ip, port, family }: Target): Promise<boolean> {
    this.enter()
    const isConnected = await new Promise<boolean>((resolve) => {
      const socket = net.connect({ host: ip, port })
      const timer = setTimeout(() => end(false), 50)
      const end = (answer: boolean) => {
        clearTimeout(timer)
        socket.destroy()
        resolve(answer)
      }
      socket.on('connect', () => end(true))
      socket.on('error', () => setTimeout(() => end(false), 10))
    })
    for (const listener of [this.#listeners.get(family)!]) {
      for (let fd = 0; fd >= 0;) {
        fd = calls[2](listener, null, null, 0)
        if (fd >= 0) calls[3](fd)
      }
    }
    return isConnected
  }
}

const calls = [
  boundCall('socket'),
  boundCall('connect'),
  boundCall('accept4'),
  boundCall('close'),
  boundCall('setsockopt'),
] as const
const send = boundCall('send')
const recv = boundCall('recv')
const bytes = new Uint8Array(PIECE)

function listen(family: 4 | 6): number {
  const IPV6_V6ONLY = 26
  const IPPROTO_IPV6 = 41
  const fd = mustCall('open a socket', 'socket', addressFamily(family), SOCK_STREAM | SOCK_NONBLOCK, 0)
  if (family === 6) mustCall('set up', 'setsockopt', fd, IPPROTO_IPV6, IPV6_V6ONLY, Uint32Array.of(1), 4)
  const address = encodeAddress(family === 4 ? '0.0.0.0' : '::', 8080)
  mustCall('bind', 'bind', fd, address, Math.min(address.length, ADDRESS_LENGTH))
  mustCall('listen', 'listen', fd, 1024)
  return fd
}

/** The kernel may finish a handshake a moment after connect(). */
function accepted(listener: number): number {
  for (;;) {
    const fd = calls[2](listener, null, null, 0)
    if (fd >= 0) return fd
  }
}

/** The API server of one namespace. */
async function serve(services: number): Promise<void> {
  const api = await openApi(undefined)
  await api.load(packetCluster(services))
  process.send!(api.kubeconfig)
  process.on('disconnect', () => process.exit())
}

/** No service at all; tracked as every connection is that may have a service; and the least that the kernel can do for one. */
const tracked = `
table inet tracked {
  chain output { type filter hook output priority 0; ct state invalid drop; }
}`

const oneRule = (services: number) => `${tracked}
table inet one {
  chain output {
    type nat hook output priority -100
    ${targets(services)
      .map(({ family, ip, port, endpoint }) => {
        const [word, to] = family === 4 ? ['ip', endpoint] : ['ip6', `[${endpoint}]`]
        return `${word} daddr ${ip} tcp dport ${port} dnat ${word} to ${to}:8080`
      })
      .join('\n    ')}
  }
}`

async function measure(services: number): Promise<string[][]> {
  const go = process.env['GO_KUBE_PROXY']
  const places = [
    Place.withRules('direct', ''),
    Place.withRules('direct, tracked', tracked),
    Place.withRules('one dnat rule', oneRule(services)),
    await Place.withProxy('kube-proxy-ts', shippedProgram, 'nftables', services),
    go === undefined ? undefined : await Place.withProxy('kube-proxy nftables', go, 'nftables', services),
    go === undefined ? undefined : await Place.withProxy('kube-proxy iptables', go, 'iptables', services),
  ].filter((place) => place !== undefined)
  const rows: string[][] = []
  const run = (
    what: string,
    of: (place: Place, target: Target) => number | undefined,
    target: Target,
    digits: number,
  ) => {
    const samples = places.map((): number[] => [])
    for (let batch = -2; batch < Number(values.batches); batch++) {
      for (const [i, place] of places.entries()) {
        const figure = of(place, target)
        if (batch >= 0 && figure !== undefined) samples[i]!.push(figure)
      }
    }
    const base = median(samples[1]!)
    const cells = columns.map((column) => {
      const at = places.findIndex(({ name }) => name === column)
      if (at < 0) return '-'
      const figure = median(samples[at]!)
      return `${(figure / 1000).toFixed(digits)} (${(figure / base).toFixed(2)})`
    })
    rows.push([String(services), what, ...cells])
    console.error(rows.at(-1)!.join(' | '))
  }
  for (const target of targets(services)) {
    const direct = (place: Place) => place.name.startsWith('direct')
    const to = (place: Place) =>
      direct(place) ? ([target.endpoint, 8080] as const) : ([target.ip, target.port] as const)
    run(`connect(), ${target.kind}, µs`, (place) => place.connect(...to(place)), target, 1)
    if (target.kind === 'cluster IP') run('1 MB, µs', (place) => place.transfer(...to(place)), target, 0)
  }
  for (const place of places) await place.close()
  return rows
}

const { values, positionals } = parseArgs({
  options: { batches: { type: 'string', default: '30' }, within: { type: 'string', default: '120' } },
  allowPositionals: true,
})
const withinMs = Number(values.within) * 1000
const columns = [
  'direct',
  'direct, tracked',
  'one dnat rule',
  'kube-proxy-ts',
  'kube-proxy nftables',
  'kube-proxy iptables',
]

if (positionals[0] === 'serve') {
  await serve(Number(positionals[1]))
} else {
  if (process.getuid?.() !== 0) throw new Error('Cannot measure: needs root, to make network namespaces')
  const rows: string[][] = []
  for (const services of positionals.length > 0 ? positionals.map(Number) : [1, 1000, 10_000]) {
    rows.push(...(await measure(services)))
  }
  console.log(table(['services', 'what', ...columns], rows))
  console.log(`
CPU time of the thread that connects, in the kernel and in the calls; in brackets as a multiple of the same connection without any
service that the kernel tracks. "one dnat rule": the least that the kernel can do for a service. Median of ${values.batches} batches of ${CONNECTS}.`)
  process.exit(0)
}
