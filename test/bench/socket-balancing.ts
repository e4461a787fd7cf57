// What the choice at connect() takes, by itself: of a connection, in a namespace without any rules, and of the proxy that keeps
// its maps.
//   npm run bench:connect -- [services ...]

import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { SocketBalancing } from '../../src/connect/socket-balancing.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { silentLogger } from '../../src/lib/log.ts'
import type { ServicePortView } from '../../src/model/types.ts'
import { aNodeView } from '../support/arbitrary-views.ts'
import { Cgroup } from '../support/cgroup.ts'
import { aClusterIpView, backendPort } from '../support/cluster-ip-view.ts'
import { DatagramClient } from './datagrams.ts'
import { median, table } from './figures.ts'
import { LocalClient } from './local-client.ts'
import { enterOwnNetwork } from './netns.ts'

const BATCHES = 40
const ENDPOINTS = 10
const CHANGES = 1000
const node = aNodeView({ family: 4 })
const service = '172.16.0.1'
const translated = '172.16.0.2'
const endpoint = '10.254.0.1'

/** Averages of batches in turn, in microseconds. */
function inTurns(client: LocalClient, ...targets: (readonly [ip: string, port: number])[]): number[] {
  const samples = targets.map((): number[] => [])
  for (let batch = -3; batch < BATCHES; batch++) {
    for (const [i, [ip, port]] of targets.entries()) {
      const figure = client.connect(ip, port)
      if (figure === undefined) throw new Error(`Cannot connect to ${ip}:${port}`)
      if (batch >= 0) samples[i]!.push(figure)
    }
  }
  return samples.map((figures) => median(figures) / 1000)
}

/** Opens it for some service ports, and waits until they are in the kernel. */
async function open(cgroup: Cgroup, views: readonly ServicePortView[]): Promise<SocketBalancing> {
  let count = 0
  const choice = new SocketBalancing({
    scope: cgroup.folder,
    machineAddresses: () => [],
    opensLoopback: false,
    families: [4, 6],
    views: () => views,
    onFailed: () => {},
    onMended: () => {},
    onFrontends: (_, frontends) => (count = frontends),
    clock: systemClock,
    log: silentLogger,
  })
  choice.follow(node, [])
  while (count !== views.length) await sleep(1)
  return choice
}

async function measureConnect(cgroup: Cgroup): Promise<string[]> {
  const client = new LocalClient()
  const [without] = inTurns(client, [endpoint, backendPort])
  const choice = await open(cgroup, [aClusterIpView(service, [endpoint, '10.254.0.2', '10.254.0.3'])])
  const [past, chosen] = inTurns(client, [endpoint, backendPort], [service, 80])
  await choice.close()
  return [without, past, chosen].map((figure) => figure!.toFixed(1))
}

/** The same for UDP. The rule is the least that rules can cost. */
async function measureDatagrams(cgroup: Cgroup): Promise<string[][]> {
  const rule = `ip daddr ${translated} udp dport 80 dnat to ${endpoint}:${backendPort}`
  const chain = `chain out { type nat hook output priority -100; ${rule}; }`
  execFileSync('nft', ['-f', '-'], { input: `table ip bench { ${chain}; }` })
  const tcp = aClusterIpView(service, [endpoint])
  const frontends = tcp.frontends.map((frontend) => ({ ...frontend, protocol: 'UDP' as const }))
  const choice = await open(cgroup, [{ ...tcp, protocol: 'UDP', frontends }])
  const client = new DatagramClient(endpoint, backendPort)
  const targets = [[endpoint, backendPort] as const, [translated, 80] as const, [service, 80] as const]
  const rows = (['one', 'each'] as const).map((sockets) => {
    const samples = targets.map((): number[] => [])
    for (let batch = -3; batch < BATCHES; batch++) {
      for (const [i, [ip, port]] of targets.entries()) {
        const figure = client.ask(ip, port, sockets)
        if (batch >= 0) samples[i]!.push(figure)
      }
    }
    const figures = samples.map((each) => median(each) / 1000)
    const times = (us: number) => `${us.toFixed(2)} (${(us / figures[0]!).toFixed(2)})`
    return [sockets === 'one' ? 'of one socket' : 'each of a socket of its own', ...figures.map(times)]
  })
  client.close()
  await choice.close()
  execFileSync('nft', ['delete', 'table', 'ip', 'bench'])
  return rows
}

/** What the kernel says that the maps of this process take. */
function mapBytes(): number {
  return readdirSync('/proc/self/fd')
    .filter((fd) => isMap(fd))
    .map((fd) => Number(/^memlock:\s+(\d+)/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1'))?.[1] ?? 0))
    .reduce((sum, bytes) => sum + bytes, 0)
}

function isMap(fd: string): boolean {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`).includes('bpf-map')
  } catch {
    // The descriptor with which the folder is read.
    return false
  }
}

async function measureMaps(cgroup: Cgroup, services: number): Promise<string[]> {
  const viewOf = (i: number) => {
    const hosts = Array.from(
      { length: ENDPOINTS },
      (_, j) => `10.${(i >> 12) & 255}.${(i >> 4) & 255}.${(i & 15) * 16 + j}`,
    )
    return aClusterIpView(`172.${16 + (i >> 16)}.${(i >> 8) & 255}.${i & 255}`, hosts)
  }
  const views = Array.from({ length: services }, (_, i) => viewOf(i))
  let lastMs = performance.now()
  let longestMs = 0
  const timer = setInterval(() => {
    longestMs = Math.max(longestMs, performance.now() - lastMs)
    lastMs = performance.now()
  }, 1)
  const startMs = performance.now()
  const choice = await open(cgroup, views)
  const filledMs = performance.now() - startMs
  clearInterval(timer)
  const bytes = mapBytes()
  let before = views[0]!
  const changesMs = performance.now()
  for (let i = 0; i < CHANGES; i++) {
    const after = viewOf(i % 2 === 0 ? services + 1 : 0)
    // The same service with other endpoints.
    const changed = { ...after, name: before.name, frontends: rebased(after, before) }
    choice.follow(node, [{ name: before.name, before, after: changed }])
    before = changed
  }
  const changeUs = ((performance.now() - changesMs) * 1000) / CHANGES
  await choice.close()
  return [
    String(services),
    `${(filledMs / 1000).toFixed(2)} s`,
    `${longestMs.toFixed(0)} ms`,
    `${changeUs.toFixed(0)} µs`,
    `${(bytes / 1e6).toFixed(0)} MB`,
  ]
}

function rebased(
  { frontends }: ServicePortView,
  { frontends: [first] }: ServicePortView,
): ServicePortView['frontends'] {
  return frontends.map((frontend) => ({ ...frontend, address: first!.address }))
}

enterOwnNetwork()
const routes = [
  'address add 10.255.255.1/32 dev lo',
  'route add local 10.0.0.0/8 dev lo',
  'route add 172.16.0.0/12 dev lo src 10.255.255.1',
]
execFileSync('ip', ['-batch', '-'], { input: routes.join('\n') })
const cgroup = new Cgroup('kube-proxy-ts-bench')
cgroup.enter()
try {
  const columns = ['no program', 'a program, no service', 'a service']
  console.log(table(columns, [await measureConnect(cgroup)]))
  console.log(`\nCPU of a connect() in µs, without any rules. Median of ${BATCHES} batches.\n`)
  console.log(table(['questions', 'direct', 'one dnat rule', 'chosen'], await measureDatagrams(cgroup)))
  console.log('\nCPU of a datagram and its answer in µs, without connect(). Client and server on one thread, tracked.')
  console.log('Ten times as many ms of CPU take 10,000 in a second.\n')
  const sizes = process.argv.slice(2).map(Number)
  const rows: string[][] = []
  for (const services of sizes.length > 0 ? sizes : [1000, 10_000, 100_000])
    rows.push(await measureMaps(cgroup, services))
  console.log(
    table(['services', 'all in the kernel', 'longest turn', `one with other ${ENDPOINTS} endpoints`, 'maps'], rows),
  )
  console.log(
    `\n${ENDPOINTS} endpoints each. The maps are as large as the kernel says; 7 MB of them are for open sockets of TCP, and as many for UDP.`,
  )
} finally {
  cgroup.leave()
  cgroup[Symbol.dispose]()
}
