// A process with a network namespace of its own, in which endpoints listen and connections are measured. It does what its parent
// tells it, one thing at a time.

import { execFileSync, fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import net from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { boundCall, lastErrno, mustCall } from '../../src/system/libc.ts'
import { ADDRESS_LENGTH, addressFamily, encodeAddress, familyOf } from '../../src/system/socket-address.ts'
import { Cgroup } from '../support/cgroup.ts'
import { openApi } from './beside-api.ts'
import { Contestant } from './beside-contestant.ts'
import { enterOwnNetwork } from './netns.ts'
import { packetCluster, type Target, targets } from './packets-cluster.ts'

/** What makes services there: rules in nft's language, or a proxy; it may choose at connect(). */
export type Maker =
  | { readonly rules: string }
  | { readonly program: string; readonly mode: string; readonly choosesAtConnect?: true }

export interface PlaceSettings {
  readonly name: string
  readonly services: number
  readonly withinMs: number
  readonly maker: Maker
}

/** What the parent asks for. */
export type Order =
  | { readonly do: 'open'; readonly settings: PlaceSettings }
  | { readonly do: 'connect' | 'transfer'; readonly ip: string; readonly port: number }
  | { readonly do: 'close' }

/** Nanoseconds, or undefined where it did not succeed. */
export type Answer = { readonly figure?: number | undefined; readonly error?: string }

/** In one batch, and before it, so that the processor has at hand what it needs. */
export const CONNECTS = 100
const WARM_UP = 50
const PIECE = 1 << 16
const PIECES = 200
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

const [socket, connect, accept, close, setsockopt] = [
  boundCall('socket'),
  boundCall('connect'),
  boundCall('accept4'),
  boundCall('close'),
  boundCall('setsockopt'),
] as const
const send = boundCall('send')
const recv = boundCall('recv')
const bytes = new Uint8Array(PIECE)

class Place {
  readonly #settings: PlaceSettings
  readonly #listeners: Readonly<Record<4 | 6, number>>
  #proxy: Contestant | undefined
  #cgroup: Cgroup | undefined
  #api: ChildProcess | undefined

  constructor(settings: PlaceSettings) {
    this.#settings = settings
    enterOwnNetwork()
    const routes = [
      'address add 10.255.255.1/32 dev lo',
      'address add fd00:10:ffff::1/128 dev lo nodad',
      'route add local 10.0.0.0/8 dev lo',
      'route add local fd00:10::/32 dev lo',
      'route add 172.16.0.0/12 dev lo src 10.255.255.1',
      'route add fd00:172::/32 dev lo src fd00:10:ffff::1',
    ]
    execFileSync('ip', ['-batch', '-'], { input: routes.join('\n') })
    this.#listeners = { 4: listen(4), 6: listen(6) }
  }

  async open(): Promise<void> {
    const { maker } = this.#settings
    if ('rules' in maker) execFileSync('nft', ['-f', '-'], { input: maker.rules })
    else await this.#openProxy(maker)
  }

  /** Nanoseconds of connect() to this address, on average; undefined when one of them failed. */
  connect(ip: string, port: number): number | undefined {
    const address = encodeAddress(ip, port)
    const family = familyOf(address)
    const linger = Uint32Array.of(1, 0)
    let sum = 0
    for (let i = -WARM_UP; i < CONNECTS; i++) {
      const client = socket(addressFamily(family), SOCK_STREAM, 0)
      setsockopt(client, SOL_SOCKET, SO_LINGER, linger, 8)
      setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, patience, 16)
      const startNs = cpuNs()
      const result = connect(client, address, address.length)
      if (i >= 0) sum += cpuNs() - startNs
      if (result !== 0) return this.#failed(client, ip, port)
      close(accepted(this.#listeners[family]))
      close(client)
    }
    return sum / CONNECTS
  }

  /** Nanoseconds per MB, sent and received; undefined when it cannot connect. */
  transfer(ip: string, port: number): number | undefined {
    const address = encodeAddress(ip, port)
    const family = familyOf(address)
    const client = socket(addressFamily(family), SOCK_STREAM, 0)
    setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, patience, 16)
    if (connect(client, address, address.length) !== 0) return this.#failed(client, ip, port)
    const server = accepted(this.#listeners[family])
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

  #failed(client: number, ip: string, port: number): undefined {
    console.error(`Cannot connect to ${ip}:${port} in ${this.#settings.name}: ${lastErrno()}`)
    close(client)
  }

  async close(): Promise<void> {
    await this.#proxy?.[Symbol.asyncDispose]()
    this.#api?.kill()
    this.#cgroup?.leave()
    this.#cgroup?.[Symbol.dispose]()
  }

  async #openProxy({ program, mode, choosesAtConnect }: Exclude<Maker, { rules: string }>): Promise<void> {
    const { services, withinMs } = this.#settings
    const flags = ['--cluster-cidr=10.0.0.0/8,fd00:10::/32']
    if (choosesAtConnect === true) {
      this.#cgroup = new Cgroup('kube-proxy-ts-bench')
      flags.push(`--choose-at-connect=${this.#cgroup.folder}`)
    }
    this.#api = fork(new URL(import.meta.url), ['serve', String(services)])
    const [kubeconfig] = (await once(this.#api, 'message')) as [string]
    this.#proxy = new Contestant(program, mode, kubeconfig, flags)
    const endMs = Date.now() + withinMs
    for (const target of targets(services)) {
      while (!(await this.#answers(target))) {
        if (this.#proxy.ended !== undefined) throw new Error(this.#proxy.ended)
        if (Date.now() > endMs) throw new Error(`${target.kind} not live within ${withinMs / 1000} s`)
      }
    }
    if (this.#cgroup === undefined) return
    while (!this.#proxy.said('are chosen at connect()')) await sleep(10)
    // The maps are filled after that.
    await sleep(1000)
    this.#cgroup.enter()
  }

  async #answers({ ip, port, family }: Target): Promise<boolean> {
    const isConnected = await new Promise<boolean>((resolve) => {
      const client = net.connect({ host: ip, port })
      const timer = setTimeout(() => end(false), 50)
      const end = (answer: boolean) => {
        clearTimeout(timer)
        client.destroy()
        resolve(answer)
      }
      client.on('connect', () => end(true))
      client.on('error', () => setTimeout(() => end(false), 10))
    })
    for (let fd = 0; fd >= 0;) {
      fd = accept(this.#listeners[family], null, null, 0)
      if (fd >= 0) close(fd)
    }
    return isConnected
  }
}

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
    const fd = accept(listener, null, null, 0)
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

let place: Place | undefined

async function obey(order: Order): Promise<number | undefined> {
  switch (order.do) {
    case 'open':
      place = new Place(order.settings)
      await place.open()
      return undefined
    case 'close':
      await place?.close()
      return undefined
    default:
      return place![order.do](order.ip, order.port)
  }
}

const [role, services] = process.argv.slice(2)
if (role === 'serve') {
  await serve(Number(services))
} else if (role === 'measure') {
  process.on('message', (order: Order) => {
    const answer = (what: Answer) => process.send!(what)
    obey(order).then(
      (figure) => answer({ figure }),
      (error: unknown) => answer({ error: String(error) }),
    )
  })
  process.on('disconnect', () => process.exit())
}
