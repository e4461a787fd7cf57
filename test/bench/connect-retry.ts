// What connect retry costs a healthy service: time to connect, throughput, and the proxy's CPU, with the table of retries and
// without it, in turns.
//   npm run bench:retry
//
// "Without" is the table switched off (dormant): its chains see no packets, as if there were none.

import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { mustCall, tryCall } from '../../src/system/libc.ts'
import { encodeAddress } from '../../src/system/socket-address.ts'
import { openBoundSocket } from '../../packages/sandbox/src/netns/sockets.ts'
import { aService, aSlice } from '../support/builders.ts'
import { eventually } from '../support/eventually.ts'
import type { Netns } from '../support/netns/netns.ts'
import { startProxy } from '../support/proxy-process.ts'
import { openRig } from '../support/rig.ts'
import { shippedProgram } from './beside-contestant.ts'
import { median, table } from './figures.ts'

const ROUNDS = 300
const CONNECTS = 50
const WINDOWS = 60
const WINDOW_MS = 250
const RATE = 5000
const LOAD_S = 6
const WEB_PORT = 7071
const BULK_PORT = 7070
/** What came while this process was busy connecting has room here. */
const BACKLOG = 4096

await using rig = await openRig()
const { node, pods, sources } = rig.network
await using proxy = await startProxy({
  netns: node,
  mode: 'nftables',
  kubeconfig: rig.cluster.kubeconfig,
  args: ['--connect-retry'],
  command: [shippedProgram],
})
const web = aService({
  ports: [
    { name: 'web', targetPort: WEB_PORT },
    { name: 'bulk', port: 81, targetPort: BULK_PORT },
  ],
})
rig.cluster.put(web, aSlice(web, ['localB', 'localC']))
await rig.settled()
const addresses = { web: encodeAddress(web.spec.clusterIP, 80) }
await eventually('the table is there', () =>
  node.run('nft', ['list', 'set', 'ip', 'kube-proxy-retry', 'frontends']).includes(web.spec.clusterIP)
    ? undefined
    : 'not yet',
)

/** With its chains in the way of packets, or without. */
function setRetry(state: 'with' | 'without'): void {
  const flags = state === 'with' ? '' : 'flags dormant;'
  node.run('nft', ['-f', '-'], `table ip kube-proxy-retry { ${flags} }`)
}

const LINGER = Int32Array.of(1, 0)

const CLOCK_THREAD_CPUTIME_ID = 3

/**
 * The processor's time that this thread has had. The kernel does all the work of a handshake within connect(), the node's rules
 * and the server's part too, so this is what it costs; unlike a clock on the wall, it does not depend on what else runs.
 */
function threadCpuMs(): number {
  const time = new BigUint64Array(2)
  mustCall('read a clock', 'clock_gettime', CLOCK_THREAD_CPUTIME_ID, time)
  return Number(time[0]) * 1000 + Number(time[1]) / 1e6
}

/** Connects `times` times, one after the other, and hangs up. Milliseconds of the processor in all. */
function connectOften(from: Netns, times: number): number {
  return from.enter(() => {
    const fds: number[] = []
    const startedMs = threadCpuMs()
    for (let i = 0; i < times; i++) {
      const fd = mustCall('open a socket', 'socket', 2, 1, 0)
      fds.push(fd)
      mustCall('connect', 'connect', fd, addresses.web, addresses.web.length)
    }
    const tookMs = threadCpuMs() - startedMs
    made += times
    for (const fd of fds) {
      // Hanging up with a reset leaves nothing in TIME_WAIT.
      tryCall('setsockopt', fd, 1, 13, LINGER, 8)
      tryCall('close', fd)
    }
    return tookMs
  })
}

type Both = Record<'with' | 'without', number[]>

async function inTurns(
  rounds: number,
  measure: (state: 'with' | 'without') => number | Promise<number>,
): Promise<Both> {
  const figures: Both = { with: [], without: [] }
  for (let round = 0; round < rounds; round++) {
    // Whichever comes first may find the machine in another mood.
    for (const state of round % 2 === 0 ? (['with', 'without'] as const) : (['without', 'with'] as const)) {
      setRetry(state)
      figures[state].push(await measure(state))
    }
  }
  setRetry('with')
  return figures
}

let received = 0
let made = 0
let accepted = 0
for (const pod of [pods.localB, pods.localC]) {
  const serve = (port: number, onBytes: (length: number) => void) =>
    createServer((socket) => {
      if (port === WEB_PORT) accepted++
      socket.on('data', (bytes) => onBytes(bytes.length))
      socket.on('error', () => {})
    }).listen({ fd: openBoundSocket(pod, 'tcp', port) }, BACKLOG)
  serve(WEB_PORT, () => {})
  serve(BULK_PORT, (length) => (received += length))
}

/** The servers live in this process, and take one connection in a turn of it. Until all but so many have been taken. */
async function seen(left: number): Promise<void> {
  const isDone = () => made - accepted <= left
  await nextTurn()
  while (!isDone()) await nextTurn()
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve))
}

connectOften(sources.localPod, CONNECTS)
await seen(0)
const connects = await inTurns(ROUNDS, async () => {
  const us = (connectOften(sources.localPod, CONNECTS) / CONNECTS) * 1000
  await seen(0)
  return us
})

const flood = `const s = require('net').connect(81, '${web.spec.clusterIP}'); const b = Buffer.alloc(1 << 18)
  const go = () => { while (s.write(b)); }; s.on('connect', go); s.on('drain', go)`
const sender = sources.localPod.enter(() => spawn(process.execPath, ['-e', flood], { stdio: 'inherit' }))
await eventually('bytes flow', () => (received > 1e7 ? undefined : 'not yet'))
/** What the sender's thread has had of the processor. Rules are walked in it, too: the kernel delivers what it sends. */
const senderCpuMs = () =>
  Number(readFileSync(`/proc/${sender.pid}/task/${sender.pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6
const rates: Both = { with: [], without: [] }
const bulk = await inTurns(WINDOWS, async (state) => {
  const before = received
  const [startedMs, cpuMs] = [performance.now(), senderCpuMs()]
  await sleep(WINDOW_MS)
  const bits = (received - before) * 8
  rates[state].push(bits / (performance.now() - startedMs) / 1e6)
  return ((senderCpuMs() - cpuMs) / bits) * 1e9
})
sender.kill()

function cpuMs(): number {
  const fields = readFileSync(`/proc/${proxy.pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}

/** Milliseconds of the proxy's CPU per second. */
async function proxyCpu(work: (untilMs: number) => Promise<number>): Promise<{ perSecond: number; done: number }> {
  await sleep(500)
  const before = cpuMs()
  const startedMs = performance.now()
  const done = await work(startedMs + LOAD_S * 1000)
  return { perSecond: ((cpuMs() - before) / (performance.now() - startedMs)) * 1000, done }
}

const idle = await proxyCpu(async () => {
  await sleep(LOAD_S * 1000)
  return 0
})
const loaded = await proxyCpu(async (untilMs) => {
  const startedMs = performance.now()
  let done = 0
  while (performance.now() < untilMs) {
    const due = Math.min(100, Math.floor(((performance.now() - startedMs) * RATE) / 1000) - done)
    if (due > 0) connectOften(sources.localPod, due)
    done += Math.max(0, due)
    await seen(BACKLOG / 4)
  }
  return done
})

/** Of the two that were measured next to each other: what the machine does besides changes slowly. */
const difference = ({ with: on, without: off }: Both) =>
  `${(median(on.map((value, i) => value / off[i]! - 1)) * 100).toFixed(1)} %`
const row = (name: string, both: Both, digits: number, unit: string) => [
  name,
  `${median(both.without).toFixed(digits)} ${unit}`,
  `${median(both.with).toFixed(digits)} ${unit}`,
  difference(both),
]
console.log(
  table(
    ['a healthy service', 'without retry', 'with retry', 'difference'],
    [
      row('connect(), time of the processor', connects, 1, 'us'),
      row('a gigabit, time of the sender’s processor', bulk, 1, 'ms'),
      row('throughput', rates, 2, 'Gbit/s'),
    ],
  ),
)
console.log(`
Medians of ${ROUNDS} rounds of ${CONNECTS} connections and of ${WINDOWS} windows of ${WINDOW_MS} ms, with and without in turns; differences are medians of those of\nneighbours.
CPU of the proxy: ${idle.perSecond.toFixed(1)} ms per second at rest, ${loaded.perSecond.toFixed(1)} ms per second with ${(loaded.done / LOAD_S).toFixed(0)} new connections per second.`)
await proxy.stop('SIGTERM')
process.exit(0)
