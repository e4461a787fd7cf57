// What it costs to look at connections: at 5,000 a second, while nobody looks, while `kube-proxy flows` does, with a flow log.
//   npm run bench:flows -- [connections a second] [--seconds=N]
//
// Runs the built program against an API server on loopback, in a network namespace of its own. Each connection is opened, accepted and
// closed by this process, through the rules of the nftables mode. CPU of the proxy is per second of the clock; CPU of the sender
// has what the kernel spends on notifications.

import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ControlClient } from '../../src/serve/control/client.ts'
import type { FlowsAnswer } from '../../src/serve/control/flows.ts'
import { boundCall, mustCall } from '../../src/system/libc.ts'
import { addressFamily, encodeAddress } from '../../src/system/socket-address.ts'
import { TestApiServer } from '../support/api-server/api-server.ts'
import { benchNode } from '../support/api-server/sample-cluster.ts'
import { table } from './figures.ts'
import { MeasuredProxy } from './measured-proxy.ts'
import { enterOwnNetwork } from './netns.ts'

const ENDPOINT = '10.1.0.1'
/** Not the endpoint: what reaches itself is masqueraded. */
const CLIENT = '10.1.0.2'
const SERVICE = '172.20.0.1'
const PORT = 9001
const SOCK_STREAM = 1
const TURN_MS = 10

const words = process.argv.slice(2)
const wanted = Number(words.find((word) => /^\d+$/.test(word)) ?? 5000)
const seconds = Number(words.find((word) => word.startsWith('--seconds='))?.split('=')[1] ?? 10)
enterOwnNetwork()
for (const address of [ENDPOINT, CLIENT]) execFileSync('ip', ['address', 'add', `${address}/32`, 'dev', 'lo'])
execFileSync('ip', ['route', 'add', '172.16.0.0/12', 'dev', 'lo', 'src', CLIENT])
writeFileSync('/proc/sys/net/ipv4/ip_local_port_range', '10000 65000')
// The kernel keeps closed connections for two minutes: more than fit, at this rate.
writeFileSync('/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_time_wait', '5')
const folder = mkdtempSync(join(tmpdir(), 'bench-flows-'))
const socket = join(folder, 'proxy.sock')
const logFile = join(folder, 'flows.jsonl')

const call = {
  socket: boundCall('socket'),
  connect: boundCall('connect'),
  accept: boundCall('accept4'),
  close: boundCall('close'),
  time: boundCall('clock_gettime'),
}
const listener = mustCall('open a socket', 'socket', addressFamily(4), SOCK_STREAM, 0)
const own = encodeAddress(ENDPOINT, PORT)
mustCall('bind', 'bind', listener, own, own.length)
mustCall('listen', 'listen', listener, 128)
const target = encodeAddress(SERVICE, 80)

function oneConnection(): void {
  const client = call.socket(addressFamily(4), SOCK_STREAM, 0)
  if (call.connect(client, target, target.length) !== 0) throw new Error('Cannot measure: a connection failed')
  const accepted = call.accept(listener, null, null, 0)
  // The server closes first: the client's port is free at once.
  call.close(accepted)
  call.close(client)
}

const time = new BigUint64Array(2)
function threadCpuUs(): number {
  const CLOCK_THREAD_CPUTIME_ID = 3
  call.time(CLOCK_THREAD_CPUTIME_ID, time)
  return Number(time[0]) * 1e6 + Number(time[1]) / 1e3
}

interface Load {
  readonly rate: number
  readonly senderUs: number
}

/** In turns, so that other work of this process goes on. */
async function connectFor(ms: number): Promise<Load> {
  const startMs = performance.now()
  let made = 0
  let cpuUs = 0
  for (;;) {
    const passedMs = performance.now() - startMs
    if (passedMs >= ms) break
    const due = Math.floor((passedMs / 1000) * wanted) - made
    const beforeUs = threadCpuUs()
    for (let i = 0; i < Math.min(due, wanted / 10); i++, made++) oneConnection()
    cpuUs += threadCpuUs() - beforeUs
    await sleep(TURN_MS)
  }
  return { rate: made / ((performance.now() - startMs) / 1000), senderUs: cpuUs / made }
}

/** As `kube-proxy flows` asks. */
class Looker {
  readonly #client = new ControlClient(socket)
  #isOpen = true
  records = 0
  leftOut = 0
  missed = 0

  static async open(): Promise<Looker> {
    const looker = new Looker()
    const { last } = await looker.#client.ask<FlowsAnswer>('flows')
    void looker.#askOn(last)
    return looker
  }

  close(): void {
    this.#isOpen = false
    this.#client.close()
  }

  async #askOn(last: number): Promise<void> {
    let after = last
    while (this.#isOpen) {
      const query = { after: String(after), wait: '5000' }
      const answer = await this.#client.ask<FlowsAnswer>('flows', { query }).catch(() => undefined)
      if (answer === undefined) return
      after = answer.last
      this.records += answer.flows.length
      this.leftOut = answer.leftOut
      this.missed += answer.missed
      await sleep(200)
    }
  }
}

const objects = [
  {
    kind: 'Service',
    metadata: { name: 'web' },
    spec: { clusterIP: SERVICE, clusterIPs: [SERVICE], ipFamilies: ['IPv4'], ports: [{ port: 80, targetPort: PORT }] },
  },
  {
    kind: 'EndpointSlice',
    metadata: { name: 'web-a', labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: [ENDPOINT], conditions: { ready: true } }],
    ports: [{ port: PORT }],
  },
]

const rows: string[][] = []

async function measure(
  what: string,
  { looks = false, flags = [] }: { looks?: boolean; flags?: readonly string[] },
): Promise<void> {
  await using server = await TestApiServer.start()
  server.store.applyAll([benchNode(), ...objects])
  await using proxy = await MeasuredProxy.start(server.url, { flags: [...flags, `--control-socket=${socket}`] })
  await proxy.live()
  const looker = looks ? await Looker.open() : undefined
  // What is compiled meanwhile is not measured.
  await connectFor(3000)
  const before = {
    cpuMs: proxy.cpuMs(),
    records: looker?.records ?? linesOfLog(),
    leftOut: looker?.leftOut ?? leftOutOfLog(),
  }
  const { rate, senderUs } = await connectFor(seconds * 1000)
  const cpuMs = proxy.cpuMs() - before.cpuMs
  await sleep(1500)
  const records = ((looker?.records ?? linesOfLog()) - before.records) / seconds
  const leftOut = ((looker?.leftOut ?? leftOutOfLog()) - before.leftOut) / seconds
  rows.push([
    what,
    rate.toFixed(0),
    `${(cpuMs / seconds / 10).toFixed(1)} %`,
    `${senderUs.toFixed(1)} µs`,
    looks || flags.length > 0 ? records.toFixed(0) : '',
    looks || flags.length > 0 ? leftOut.toFixed(0) : '',
    `${proxy.rssMb().toFixed(0)} MB`,
  ])
  console.error(rows.at(-1)!.join(' | '))
  if (looker !== undefined && looker.missed > 0) console.error(`the client missed ${looker.missed} records`)
  looker?.close()
}

function logText(): string {
  const files = [`${logFile}.1`, logFile].filter((file) => statSync(file, { throwIfNoEntry: false }) !== undefined)
  return files.map((file) => readFileSync(file, 'utf8')).join('')
}

function linesOfLog(): number {
  return logText()
    .split('\n')
    .filter((line) => line.includes('"ended"')).length
}

function leftOutOfLog(): number {
  let sum = 0
  for (const line of logText().split('\n'))
    if (line.includes('"leftOut"')) sum += (JSON.parse(line) as { connections: number }).connections
  return sum
}

console.error(`load ${loadavg()[0]!.toFixed(1)}`)
await measure('nobody looks', {})
await measure('`kube-proxy flows`', { looks: true })
await measure('`--flow-log=FILE`', { flags: [`--flow-log=${logFile}`] })
rmSync(logFile, { force: true })
writeFileSync('/proc/sys/net/netfilter/nf_conntrack_acct', '1')
await measure('`--flow-log=FILE`, bytes are counted', { flags: [`--flow-log=${logFile}`] })
const head = [
  '',
  'connections a second',
  'CPU of the proxy',
  'CPU of the sender for a connection',
  'records a second',
  'connections a second without a record',
  'memory of the proxy',
]
console.log(table(head, rows))
console.log(`\n${seconds} s each; load at the end ${loadavg()[0]!.toFixed(1)}.`)
rmSync(folder, { recursive: true })
process.exit(0)
