// Clients that never stop, to see whether something else disturbs them.

import { setTimeout as sleep } from 'node:timers/promises'
import { openTcp, openUdp, tcpProbe } from './netns/probe.ts'
import type { Answer, Target } from './netns/probe.ts'
import type { Netns } from './netns/netns.ts'

export interface TrafficReport {
  /** How many new connections were made. */
  readonly connections: number
  /** How many lines went to and fro on the connections that stay open. */
  readonly exchanges: number
  /** Whatever was not answered, with the time since the start. */
  readonly losses: readonly string[]
}

/** Where traffic goes: a TCP service, and a UDP one. */
export interface TrafficTargets {
  readonly tcp: Target
  readonly udp: Target
}

/**
 * Opens a new TCP connection from each namespace every few milliseconds, and keeps one TCP connection and one UDP flow
 * busy. A lost packet shows: connections wait less than the kernel waits before it sends a second time.
 */
export async function startTraffic(
  clients: readonly Netns[],
  to: TrafficTargets,
): Promise<{ stop(): Promise<TrafficReport> }> {
  const started = performance.now()
  const report = { connections: 0, exchanges: 0, losses: [] as string[] }
  const stopping = new AbortController()
  const note = (what: string, answer: Answer) => {
    if (answer.kind === 'answered') return
    const why = answer.kind === 'failed' ? answer.code : answer.kind
    report.losses.push(`${what}: ${why} after ${Math.round(performance.now() - started)} ms`)
  }
  const untilStopped = async (work: () => Promise<void>) => {
    while (!stopping.signal.aborted) {
      await work()
      await sleep(4)
    }
  }
  const loops = clients.flatMap((netns) => [
    untilStopped(async () => {
      report.connections++
      note(`a new connection from ${netns.name}`, await tcpProbe(netns, to.tcp, { timeoutMs: 900 }))
    }),
    keepTalking(netns, to.tcp, 'tcp'),
    keepTalking(netns, to.udp, 'udp'),
  ])
  async function keepTalking(netns: Netns, target: Target, kind: 'tcp' | 'udp'): Promise<void> {
    const conversation = kind === 'tcp' ? (await openTcp(netns, target)).conversation : await openUdp(netns, target)
    const partners = new Set<string>()
    await untilStopped(async () => {
      report.exchanges++
      const answer = await conversation.say('still there?', kind === 'tcp' ? 190 : 900)
      note(`a ${kind} flow of ${netns.name}`, answer)
      if (answer.kind === 'answered') partners.add(answer.greeting.host)
    })
    conversation.close()
    if (partners.size > 1) report.losses.push(`a ${kind} flow of ${netns.name} moved: ${[...partners].join(', ')}`)
  }
  // Everything is under way before the caller disturbs it.
  await sleep(50)
  return {
    async stop() {
      stopping.abort()
      await Promise.all(loops)
      return report
    },
  }
}
