// What the userspace mode costs, beside HAProxy in front of the same backend on the same node.
//   [ROUNDS=3] [IDLE=4000] npm run bench:userspace       (needs root and haproxy; HAPROXY names another place than PATH)
//   [IDLE=4000] npm run bench:userspace -- idle          (only idle connections, without haproxy)
//
// Clients are a pod, whose address the backend sees, and the node itself. HAProxy shows the backend its own address, and in a
// line of its own that of the pod, as the userspace mode does. It has a thread for each processor, as it comes, and in a line of
// its own one, which needs less CPU and cannot use more. CPU is that of the proxying process, all of its threads. All figures of
// one line come from one run, taken in turns; compare columns rather than runs.

import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { node, pods } from '../support/addresses.ts'
import { aService, aSlice } from '../support/builders.ts'
import type { Netns } from '../support/netns/netns.ts'
import { ProxyProcess, proxyFlags } from '../support/proxy-process.ts'
import { openRig, type Rig } from '../support/rig.ts'
import { shippedProgram } from './beside-contestant.ts'
import { median, table } from './figures.ts'
import { cpuOf, rssKbOf } from './process-cost.ts'

const ROUNDS = Number(process.env['ROUNDS'] ?? 3)
const CONNECTIONS = 10_000
const STREAMS = 4
const BYTES_PER_STREAM = 1_000_000_000
const IDLE = Number(process.env['IDLE'] ?? 4000)
/** The proxy gives memory back when it has had nothing to do for two seconds. */
const GIVEN_BACK_MS = 4000
const BACKEND_PORT = 9001
const HAPROXY_PORT = 9003

const LOAD = new URL('userspace-load.js', import.meta.url).pathname

type Load = 'short' | 'large'

/** Something that proxies, and where. */
interface Candidate {
  readonly name: string
  readonly pid: number
  readonly host: string
  readonly port: number
}

process.env['PROXY_COMMAND'] ??= shippedProgram
await using rig = await openRig()
const backend = rig.network.pods.localB.spawn(['node', LOAD, 'serve', `${BACKEND_PORT}`], {
  stdio: ['ignore', 'pipe', 'inherit'],
})
await once(backend.stdout!, 'data')
const ours = await startOurs(rig)
try {
  if (process.argv[2] !== 'idle') await compareWithHaproxy()
  console.log(await memoryOfIdle(ours.candidate, rig))
} finally {
  backend.kill('SIGKILL')
  await ours.proxy[Symbol.asyncDispose]()
}

async function compareWithHaproxy(): Promise<void> {
  catchAnswers(rig.network.node)
  using haproxy = await startHaproxy(rig, HAPROXY_PORT)
  using onOneThread = await startHaproxy(rig, HAPROXY_PORT + 10, 1)
  const { localA: pod } = rig.network.pods
  const besideOurs = (other: Candidate, client: Netns, load: Load) => compare([ours.candidate, other], client, load)
  const rows = [
    ['short connections from a pod', ...(await besideOurs(haproxy.plain, pod, 'short'))],
    [
      'short connections from a pod, whose address HAProxy shows, too',
      ...(await besideOurs(haproxy.transparent, pod, 'short')),
    ],
    ['short connections from a pod, HAProxy on one thread', ...(await besideOurs(onOneThread.plain, pod, 'short'))],
    ['short connections from the node', ...(await besideOurs(haproxy.plain, rig.network.node, 'short'))],
    ['MB of large transfers to a pod', ...(await besideOurs(haproxy.plain, pod, 'large'))],
  ]
  console.log(table(['per second of CPU', 'kube-proxy-ts', 'HAProxy', 'ratio'], rows))
  const cores = await coresUsed(ours.candidate, pod)
  console.log(`\ncores used by large transfers, thread by thread: ${cores.map((each) => each.toFixed(2)).join(' + ')}`)
}

/** Rounds in turns, so that what else the machine does meets both. */
async function compare(candidates: readonly Candidate[], client: Netns, load: Load): Promise<string[]> {
  const figures = new Map<Candidate, number[]>(candidates.map((candidate) => [candidate, []]))
  const amount = load === 'short' ? CONNECTIONS : (STREAMS * BYTES_PER_STREAM) / 1e6
  for (let round = 0; round <= ROUNDS; round++) {
    for (const candidate of candidates) {
      const beforeMs = cpuOf(candidate.pid).ownMs
      await run(client, candidate, load)
      // The first round warms up.
      if (round > 0) figures.get(candidate)!.push((amount * 1000) / (cpuOf(candidate.pid).ownMs - beforeMs))
    }
  }
  const [mine = NaN, theirs = NaN] = candidates.map((candidate) => median(figures.get(candidate)!))
  return [mine.toFixed(0), theirs.toFixed(0), (mine / theirs).toFixed(2)]
}

async function run(client: Netns, { host, port }: Candidate, load: Load): Promise<void> {
  const amounts = load === 'short' ? [CONNECTIONS] : [BYTES_PER_STREAM, STREAMS]
  const args = [LOAD, load, host, `${port}`, ...amounts.map(String)]
  const child = client.spawn(['node', ...args], { stdio: ['ignore', 'inherit', 'inherit'] })
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new Error(`Cannot measure: ${args.join(' ')} ended with ${String(code)}`)
}

/** How much of a core each thread uses that does anything worth mentioning. The load needs the same cores. */
async function coresUsed(candidate: Candidate, client: Netns): Promise<number[]> {
  const tasks = `${candidate.pid}/task`
  const threads = readdirSync(`/proc/${tasks}`).map((thread) => `${tasks}/${thread}`)
  const beforeMs = threads.map((thread) => cpuOf(thread).ownMs)
  const startMs = performance.now()
  await run(client, candidate, 'large')
  const elapsedMs = performance.now() - startMs
  return threads.map((thread, i) => (cpuOf(thread).ownMs - beforeMs[i]!) / elapsedMs).filter((cores) => cores > 0.02)
}

async function memoryOfIdle({ pid, host, port }: Candidate, { network }: Rig): Promise<string> {
  await sleep(GIVEN_BACK_MS)
  const beforeKb = rssKbOf(pid)
  const args = [LOAD, 'idle', host, `${port}`, `${IDLE}`]
  const child = network.pods.localA.spawn(['node', ...args], { stdio: ['pipe', 'pipe', 'inherit'] })
  await once(child.stdout!, 'data')
  await sleep(GIVEN_BACK_MS)
  const withThemKb = rssKbOf(pid)
  const carried = connectionsTo(backend.pid!, BACKEND_PORT)
  if (carried !== IDLE) throw new Error(`Cannot measure: the backend has ${carried} connections of ${IDLE}`)
  child.stdin!.end()
  await once(child, 'exit')
  const each = ((withThemKb - beforeKb) / IDLE).toFixed(1)
  return `${IDLE} idle connections: ${beforeKb} kB before, ${withThemKb} kB with them, ${each} kB for each`
}

async function startOurs({ network, cluster }: Rig): Promise<{ proxy: ProxyProcess; candidate: Candidate }> {
  const service = aService({ ports: [{ port: 80, targetPort: BACKEND_PORT }] })
  cluster.put(service, aSlice(service, ['localB']))
  const flags = proxyFlags({ netns: network.node, mode: 'userspace', kubeconfig: cluster.kubeconfig })
  const proxy = new ProxyProcess(network.node, flags)
  await proxy.ready()
  await sleep(500)
  return { proxy, candidate: { name: 'kube-proxy-ts', pid: proxy.pid, host: service.spec.clusterIP, port: 80 } }
}

interface RunningHaproxy extends Disposable {
  readonly plain: Candidate
  /** It shows the client's address to the backend. */
  readonly transparent: Candidate
}

/** Where the plain one listens; the transparent one does so at the port behind. As many threads as it starts by itself, unless given. */
async function startHaproxy({ network, cluster }: Rig, port: number, threads?: number): Promise<RunningHaproxy> {
  const program = process.env['HAPROXY'] ?? 'haproxy'
  if (spawnSync(program, ['-v']).status !== 0) {
    throw new Error(`Cannot compare: ${program} does not run; install haproxy or name it in HAPROXY`)
  }
  const file = join(cluster.folder, `haproxy-${port}.cfg`)
  writeFileSync(
    file,
    `global
  maxconn 8000
  ${threads === undefined ? '' : `nbthread ${threads}`}
defaults
  mode tcp
  timeout connect 5s
  timeout client 1m
  timeout server 1m
frontend plain
  bind ${node.ip[4]}:${port}
  default_backend plain
backend plain
  server s ${pods.localB.ip[4]}:${BACKEND_PORT}
frontend transparent
  bind ${node.ip[4]}:${port + 1}
  default_backend transparent
backend transparent
  source 0.0.0.0 usesrc clientip
  server s ${pods.localB.ip[4]}:${BACKEND_PORT}
`,
  )
  const child = network.node.spawn([program, '-f', file], { stdio: ['ignore', 'inherit', 'ignore'] })
  await sleep(1000)
  const at = (its: number): Candidate => ({ name: 'HAProxy', pid: child.pid!, host: node.ip[4], port: its })
  return { plain: at(port), transparent: at(port + 1), [Symbol.dispose]: () => void child.kill('SIGKILL') }
}

/** What is sent to an address that HAProxy has borrowed is for HAProxy. */
function catchAnswers(netns: Netns): void {
  const rule = 'socket transparent 1 meta mark set 1'
  netns.run(
    'nft',
    ['-f', '-'],
    `table ip haproxy { chain in { type filter hook prerouting priority mangle; ${rule}; }; }`,
  )
  netns.run('ip', ['rule', 'add', 'fwmark', '1', 'lookup', '100'])
  netns.run('ip', ['route', 'add', 'local', '0.0.0.0/0', 'dev', 'lo', 'table', '100'])
}

/** Those that are open, in the network namespace of a process. */
function connectionsTo(pid: number, port: number): number {
  const local = `:${port.toString(16).padStart(4, '0').toUpperCase()}`
  const isOne = (line: string) => line.trim().split(/\s+/)[1]?.endsWith(local) === true && / 01 /.test(line)
  return readFileSync(`/proc/${pid}/net/tcp`, 'utf8').split('\n').filter(isOne).length
}
