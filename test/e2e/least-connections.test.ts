// One of four pods answers ten times slower than the others, and has one worker as they have.

import { createServer } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openBoundSocket } from '../../packages/sandbox/src/netns/sockets.ts'
import { BALANCE_ANNOTATION, type Balance } from '../../src/model/balance.ts'
import { pods } from '../support/addresses.ts'
import { aService, aSlice } from '../support/builders.ts'
import { Cleanup } from '../support/cleanup.ts'
import type { Netns } from '../support/netns/netns.ts'
import { openTcp, tcpProbe, type Target } from '../support/netns/probe.ts'
import { type ProxyProcess, startProxy } from '../support/proxy-process.ts'
import { openRig, type Rig } from '../support/rig.ts'

const SLOW_MS = 50
const FAST_MS = 5
const PODS = ['localB', 'localC', 'remoteA', 'remoteB'] as const
const PORT = 9876
/** Clients that come in a second: at random a quarter of them is more than the slow pod can serve. */
const RATE = 100

const cleanup = new Cleanup()
let rig: Rig
let proxy: ProxyProcess

beforeAll(async () => {
  rig = cleanup.use(await openRig())
  proxy = await start()
  for (const pod of PODS) cleanup.use(serveInTurn(rig.network.pods[pod], pod, pod === 'remoteB' ? SLOW_MS : FAST_MS))
})
afterAll(async () => {
  await proxy?.[Symbol.asyncDispose]()
  await cleanup[Symbol.asyncDispose]()
})

const start = () => startProxy({ netns: rig.network.node, mode: 'nftables', kubeconfig: rig.cluster.kubeconfig })

/** Answers one client after the other, and takes so long for each. */
function serveInTurn(netns: Netns, host: string, serviceMs: number): AsyncDisposable {
  let freeMs = 0
  const server = createServer({ noDelay: true }, (socket) => {
    socket.on('error', () => socket.destroy())
    const nowMs = performance.now()
    freeMs = Math.max(freeMs, nowMs) + serviceMs
    setTimeout(() => socket.write(`${JSON.stringify({ host })}\n`), freeMs - nowMs)
  })
  server.listen({ fd: openBoundSocket(netns, 'tcp', PORT) })
  return {
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => void server.close(() => resolve())),
  }
}

/** How long clients wait that come in seconds 8 to 12, in order. */
async function waitsAt(to: Target): Promise<number[]> {
  const waits: number[] = []
  const clients: Promise<void>[] = []
  const beganMs = performance.now()
  for (let i = 0; i < 12 * RATE; i++) {
    const pauseMs = beganMs + (i * 1000) / RATE - performance.now()
    if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs))
    clients.push(wait(to, i < 8 * RATE ? [] : waits))
  }
  await Promise.all(clients)
  return waits.sort((a, b) => a - b)
}

async function wait(to: Target, waits: number[]): Promise<void> {
  const beganMs = performance.now()
  const { answer, conversation } = await openTcp(rig.network.sources.localPod, to, { timeoutMs: 30_000 })
  conversation.close()
  expect(answer.kind).toBe('answered')
  waits.push(performance.now() - beganMs)
}

async function aServiceWith(balance: Balance): Promise<Target> {
  const service = aService({ ports: [{ targetPort: PORT }], annotations: { [BALANCE_ANNOTATION]: balance } })
  rig.cluster.put(service, aSlice(service, PODS))
  await rig.settled()
  return { address: service.spec.clusterIP, port: 80 }
}

const p99 = (sorted: readonly number[]) => sorted[Math.floor(sorted.length * 0.99)]!

test('with least connections the slowest clients wait less than half as long as at random, after eight seconds', async () => {
  const random = p99(await waitsAt(await aServiceWith('random')))
  const least = p99(await waitsAt(await aServiceWith('least-connections')))
  expect(least, `ms, and ${random} ms at random`).toBeLessThan(random / 2)
})

test('a proxy that starts counts the connections that are there already', async () => {
  const service = aService({ annotations: { [BALANCE_ANNOTATION]: 'least-connections' } })
  const to = { address: service.spec.clusterIP, port: 80 }
  const { targetPort } = service.spec.ports[0]!
  rig.cluster.put(service, aSlice(service, PODS))
  await rig.settled()
  const busy = { address: pods.localC.ip[4], port: targetPort }
  const held = await Promise.all(Array.from({ length: 40 }, () => openTcp(rig.network.sources.localPod, busy)))
  try {
    await proxy[Symbol.asyncDispose]()
    proxy = await start()
    await rig.settled()
    const hosts: string[] = []
    for (let i = 0; i < 250; i++) {
      const answer = await tcpProbe(rig.network.sources.localPod, to)
      hosts.push(answer.kind === 'answered' ? answer.greeting.host : answer.kind)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    // A quarter of them at random; here a 32nd of the share of each other.
    const late = hosts.slice(100)
    expect(late.filter((host) => host === 'localC').length, hosts.join(' ')).toBeLessThan(12)
  } finally {
    for (const { conversation } of held) conversation.close()
  }
})
