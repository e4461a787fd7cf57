// What it costs to be looked at: a page of metrics with as much traffic as there is room for, and each packet while a client looks.
//   npm run bench:traffic -- [service ports] [--pages]
//
// --pages: only the pages.
//
// Runs the built program against an API server on loopback, in a network namespace of its own, where one process has all
// endpoints. With and without a client by turns; compare columns of a line rather than runs. CPU is that of the process that pays:
// the proxy for pages, the sender for packets that the kernel translates, the proxy for those that it carries itself.

import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import http from 'node:http'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ControlClient } from '../../src/serve/control/client.ts'
import type { TrafficAnswer } from '../../src/serve/control/traffic.ts'
import { boundCall, mustCall } from '../../src/system/libc.ts'
import { unshareNetwork } from '../../src/system/netns.ts'
import { addressFamily, encodeAddress } from '../../src/system/socket-address.ts'
import { TestApiServer } from '../support/api-server/api-server.ts'
import type { ApiObject } from '../support/api-server/objects.ts'
import { benchNode } from '../support/api-server/sample-cluster.ts'
import { median, table } from './figures.ts'
import { MeasuredProxy } from './measured-proxy.ts'
import { setLoopbackUp } from './netns.ts'

const ENDPOINT = '10.1.0.1'
const ENDPOINT_PORT = 9001
const LOAD = new URL('userspace-load.js', import.meta.url).pathname
const PAGES = 12
const ROUNDS = 7
const PACKETS = 60_000
const CONNECTIONS = 5000
const STREAM = 1_000_000_000
/** Pages that follow each other sooner show what was read before. */
const PAGE_EVERY_MS = 1100

if (process.getuid?.() !== 0) throw new Error('Cannot measure: needs root, to make a network namespace')
const most = Number(process.argv.slice(2).find((argument) => /^\d+$/.test(argument)) ?? 8192)
unshareNetwork()
setLoopbackUp()
execFileSync('ip', ['address', 'add', `${ENDPOINT}/32`, 'dev', 'lo'])
execFileSync('ip', ['route', 'add', '172.16.0.0/12', 'dev', 'lo', 'src', ENDPOINT])
const folder = mkdtempSync(join(tmpdir(), 'bench-traffic-'))
const socket = join(folder, 'proxy.sock')
const echo = createSocket('udp4')
echo.on('message', (message, { port, address }) => echo.send(message, port, address))
await new Promise<void>((resolve) => echo.bind(ENDPOINT_PORT, ENDPOINT, resolve))
console.error(`load ${loadavg()[0]!.toFixed(1)}`)

const clusterIp = (i: number) => `172.${20 + (i >> 14)}.${(i >> 6) & 255}.${(i & 63) + 1}`

function objectsOf(services: number, protocol: 'TCP' | 'UDP'): ApiObject[] {
  return Array.from({ length: services }, (_, i): ApiObject[] => [
    {
      kind: 'Service',
      metadata: { name: `service-${i}` },
      spec: {
        clusterIP: clusterIp(i),
        clusterIPs: [clusterIp(i)],
        ipFamilies: ['IPv4'],
        ports: [{ port: 80, protocol, targetPort: ENDPOINT_PORT }],
      },
    },
    {
      kind: 'EndpointSlice',
      metadata: { name: `service-${i}-a`, labels: { 'kubernetes.io/service-name': `service-${i}` } },
      addressType: 'IPv4',
      endpoints: [{ addresses: [ENDPOINT], conditions: { ready: true } }],
      ports: [{ port: ENDPOINT_PORT, protocol }],
    },
  ]).flat()
}

interface Wish {
  readonly services: number
  readonly protocol: 'TCP' | 'UDP'
  readonly mode?: string
  readonly flags?: readonly string[]
}

async function withProxy<T>(wish: Wish, measure: (proxy: MeasuredProxy) => Promise<T>): Promise<T> {
  const { services, protocol, mode = 'nftables', flags = [] } = wish
  await using server = await TestApiServer.start()
  server.store.applyAll([benchNode(), ...objectsOf(services, protocol)])
  const all = [...flags, `--control-socket=${socket}`]
  await using proxy = await MeasuredProxy.start(server.url, { mode, flags: all })
  await proxy.live()
  return await measure(proxy)
}

/** A packet to each service port, and its answer, so that the kernel has an element for each in every set. */
async function touchAll(services: number): Promise<void> {
  const client = createSocket('udp4')
  const heard = { answers: 0 }
  client.on('message', () => heard.answers++)
  const caughtUp = async (wanted: number) => {
    for (let waited = 0; waited < 500; waited++) {
      if (heard.answers >= wanted) return
      await sleep(2)
    }
  }
  for (let i = 0; i < services; i++) {
    await new Promise((resolve) => client.send('hello', 80, clusterIp(i), resolve))
    // The receive buffer of the server is not endless.
    if (i % 64 === 63) await caughtUp(i + 1)
  }
  await caughtUp(services)
  client.close()
  if (heard.answers < services) console.error(`${services - heard.answers} packets had no answer`)
}

interface PageFigures {
  readonly cpuMs: number
  readonly tookMs: number
  /** The slowest answer to one who asks something else meanwhile. */
  readonly longestMs: number
  readonly bytes: number
  readonly pairs: number
}

async function measurePages(proxy: MeasuredProxy): Promise<PageFigures> {
  // The first one compiles.
  await readPage()
  await sleep(PAGE_EVERY_MS)
  const took: number[] = []
  const longest: number[] = []
  let bytes = 0
  const cpuBefore = proxy.cpuMs()
  for (let i = 0; i < PAGES; i++) {
    const startMs = performance.now()
    bytes = (await readPage()).length
    took.push(performance.now() - startMs)
    await sleep(PAGE_EVERY_MS)
  }
  const cpuMs = (proxy.cpuMs() - cpuBefore) / PAGES
  for (let i = 0; i < PAGES; i++) {
    longest.push(await askOthers(readPage()))
    await sleep(PAGE_EVERY_MS)
  }
  const client = new ControlClient(socket)
  const { rows } = await client.ask<TrafficAnswer>('traffic')
  client.close()
  return { cpuMs, tookMs: median(took), longestMs: median(longest), bytes, pairs: rows.length }
}

/** Asks for a small page, again and again, until the large one is there. */
async function askOthers(large: Promise<unknown>): Promise<number> {
  const state = { isThere: false }
  void large.finally(() => (state.isThere = true))
  let longestMs = 0
  while (!state.isThere) {
    const startMs = performance.now()
    await readPage(10256, '/healthz')
    longestMs = Math.max(longestMs, performance.now() - startMs)
  }
  return longestMs
}

function readPage(port = 10249, path = '/metrics'): Promise<string> {
  return new Promise((resolve, reject) => {
    http
      .get({ host: '127.0.0.1', port, path, agent: false }, (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (chunk: string) => (text += chunk))
        response.on('end', () => resolve(text))
      })
      .on('error', reject)
  })
}

/** A client as `kube-proxy top` is one, while it is open. */
class Looker {
  readonly #client = new ControlClient(socket)
  #isOpen = true

  static async open(): Promise<Looker> {
    const looker = new Looker()
    await looker.#client.ask('traffic')
    void looker.#askOn()
    return looker
  }

  async close(): Promise<void> {
    this.#isOpen = false
    this.#client.close()
    // Until the proxy has noticed.
    await sleep(300)
  }

  async #askOn(): Promise<void> {
    while (this.#isOpen) {
      await sleep(1000)
      if (this.#isOpen) await this.#client.ask('traffic').catch(() => {})
    }
  }
}

const time = new BigUint64Array(2)
const clockGettime = boundCall('clock_gettime')
const send = boundCall('send')

/** Microseconds of this thread for each packet: the kernel takes it all the way over loopback on the sender's account. */
function costOfPackets(): number {
  const CLOCK_THREAD_CPUTIME_ID = 3
  const SOCK_DGRAM = 2
  const cpuUs = () => {
    clockGettime(CLOCK_THREAD_CPUTIME_ID, time)
    return Number(time[0]) * 1e6 + Number(time[1]) / 1e3
  }
  const fd = mustCall('open a socket', 'socket', addressFamily(4), SOCK_DGRAM, 0)
  const address = encodeAddress(clusterIp(0), 80)
  mustCall('connect', 'connect', fd, address, address.length)
  const bytes = new Uint8Array(100)
  const startUs = cpuUs()
  for (let i = 0; i < PACKETS; i++) send(fd, bytes, bytes.length, 0)
  const spent = cpuUs() - startUs
  mustCall('close', 'close', fd)
  return spent / PACKETS
}

/** With a client and without one, by turns: the best of each. */
async function byTurns(measure: () => Promise<number> | number): Promise<{ without: number; looked: number }> {
  const [without, looked]: [number[], number[]] = [[], []]
  // The first round warms up.
  for (let round = 0; round <= ROUNDS; round++) {
    const alone = await measure()
    const looker = await Looker.open()
    const seen = await measure()
    await looker.close()
    if (round === 0) continue
    without.push(alone)
    looked.push(seen)
  }
  return { without: Math.min(...without), looked: Math.min(...looked) }
}

async function runLoad(...args: readonly string[]): Promise<void> {
  const child = spawn('node', [LOAD, ...args], { stdio: ['ignore', 'ignore', 'inherit'] })
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new Error(`Cannot measure: ${args.join(' ')} ended with ${String(code)}`)
}

async function startServer(): Promise<ChildProcess> {
  const child = spawn('node', [LOAD, 'serve', String(ENDPOINT_PORT)], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(child.stdout, 'data')
  return child
}

const pages: string[][] = []
let base: PageFigures | undefined
for (const [n, services] of [
  [0, most],
  [100, most],
  [most, most],
] as const) {
  const flags = n === 0 ? [] : [`--traffic-metrics=${n}`]
  const figures = await withProxy({ services, protocol: 'UDP', flags }, async (proxy) => {
    await touchAll(services)
    return measurePages(proxy)
  })
  base ??= figures
  pages.push([
    n === 0 ? 'off' : String(n),
    String(n === 0 ? 0 : figures.pairs),
    `${figures.cpuMs.toFixed(1)} ms (${(figures.cpuMs / base.cpuMs).toFixed(1)})`,
    `${figures.tookMs.toFixed(1)} ms`,
    `${figures.longestMs.toFixed(1)} ms`,
    `${(figures.bytes / 1000).toFixed(0)} kB`,
  ])
  console.error(pages.at(-1)!.join(' | '))
}
const head = [
  '`--traffic-metrics`',
  'pairs with traffic',
  'CPU of a page (as a multiple)',
  'it takes',
  '/healthz meanwhile, slowest, median of pages',
  'it is',
]
console.log(table(head, pages))
if (process.argv.includes('--pages')) {
  rmSync(folder, { recursive: true })
  process.exit(0)
}

const costs: string[][] = []
const note = (what: string, unit: string, { without, looked }: { without: number; looked: number }) => {
  costs.push([what, `${without.toFixed(2)} ${unit}`, `${looked.toFixed(2)} ${unit}`, (looked / without).toFixed(2)])
  console.error(costs.at(-1)!.join(' | '))
}
note(
  'a UDP packet of 100 bytes, nftables mode: CPU of the sender',
  'us',
  await withProxy({ services: 1, protocol: 'UDP' }, async () => {
    await touchAll(1)
    return byTurns(costOfPackets)
  }),
)
const server = await startServer()
await withProxy({ services: 1, protocol: 'TCP', mode: 'userspace' }, async (proxy) => {
  const cpuOf = async (...args: readonly string[]) => {
    const beforeMs = proxy.cpuMs()
    await runLoad(...args)
    return proxy.cpuMs() - beforeMs
  }
  const short = async () => (await cpuOf('short', clusterIp(0), '80', String(CONNECTIONS))) / (CONNECTIONS / 1000)
  note('a connection, userspace mode: CPU of the proxy', 'us', await byTurns(short))
  const large = async () => (await cpuOf('large', clusterIp(0), '80', String(STREAM), '1')) / (STREAM / 1e9)
  note('1 GB, userspace mode: CPU of the proxy', 'ms', await byTurns(large))
})
console.log(`\n${table(['what', 'while none looks', 'while one looks', 'ratio'], costs)}`)
console.log(`\nBest of ${ROUNDS}, by turns; load at the end ${loadavg()[0]!.toFixed(1)}.`)
server.kill('SIGKILL')
rmSync(folder, { recursive: true })
process.exit(0)
