// Four pods with one worker each, of which one answers ten times slower than the others; and how long clients wait.

import { createServer } from 'node:net'
import { openBoundSocket } from '../../packages/sandbox/src/netns/sockets.ts'
import type { Netns } from './netns/netns.ts'
import { openTcp, type Target } from './netns/probe.ts'
import type { TestNetwork } from './netns/test-network.ts'
import { patience } from './patience.ts'

export const SLOW_PODS = ['localB', 'localC', 'remoteA', 'remoteB'] as const
export const SLOW_PORT = 9876

const SLOW_MS = 100
const FAST_MS = 10
/** Clients that come in a second: at random a quarter of them is more than the slow pod can serve. */
const RATE = 50
/** On an idle machine; where the proxy itself has to wait for its turn, it needs longer. */
const LOOK_FROM_SECONDS = 8
const LOOK_SECONDS = 4
const MOST_PATIENCE = 3

/** They listen on SLOW_PORT, the last one is slow. */
export function serveSlowPods({ pods }: Pick<TestNetwork, 'pods'>): AsyncDisposable {
  const servers = SLOW_PODS.map((pod) => serveInTurn(pods[pod], pod, pod === SLOW_PODS.at(-1) ? SLOW_MS : FAST_MS))
  return {
    [Symbol.asyncDispose]: async () => {
      await Promise.all(servers.map((server) => server[Symbol.asyncDispose]()))
    },
  }
}

/** Answers one client after the other, and takes so long for each. */
function serveInTurn(netns: Netns, host: string, serviceMs: number): AsyncDisposable {
  let freeMs = 0
  const server = createServer({ noDelay: true }, (socket) => {
    socket.on('error', () => socket.destroy())
    const nowMs = performance.now()
    freeMs = Math.max(freeMs, nowMs) + serviceMs
    setTimeout(() => socket.write(`${JSON.stringify({ host })}\n`), freeMs - nowMs)
  })
  server.listen({ fd: openBoundSocket(netns, 'tcp', SLOW_PORT) })
  return {
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => void server.close(() => resolve())),
  }
}

/** How long the slowest of a hundred clients waits, in milliseconds, of those that come in seconds 8 to 12. */
export async function slowestWait(source: Netns, to: Target): Promise<number> {
  const waits: number[] = []
  const clients: Promise<void>[] = []
  const lookFrom = LOOK_FROM_SECONDS * Math.min(MOST_PATIENCE, patience())
  const beganMs = performance.now()
  for (let i = 0; i < (lookFrom + LOOK_SECONDS) * RATE; i++) {
    const pauseMs = beganMs + (i * 1000) / RATE - performance.now()
    if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs))
    clients.push(wait(source, to, i < lookFrom * RATE ? [] : waits))
  }
  await Promise.all(clients)
  waits.sort((a, b) => a - b)
  return waits[Math.floor(waits.length * 0.99)]!
}

async function wait(source: Netns, to: Target, waits: number[]): Promise<void> {
  const beganMs = performance.now()
  const { answer, conversation } = await openTcp(source, to, { timeoutMs: 60_000 })
  conversation.close()
  if (answer.kind !== 'answered') throw new Error(`${to.address} did not answer: ${answer.kind}`)
  waits.push(performance.now() - beganMs)
}
