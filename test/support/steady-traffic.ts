// Clients that never stop, to see whether something else disturbs them.

import { setTimeout as sleep } from 'node:timers/promises'
import { eventually } from './eventually.ts'
import { patience } from './patience.ts'
import { answersWithinMs, openTcp, openUdp } from './netns/probe.ts'
import type { Answer, Conversation, Target } from './netns/probe.ts'
import type { Netns } from './netns/netns.ts'

export interface TrafficReport {
  /** How many new connections were made. */
  readonly connections: number
  /** How many lines went to and fro on the connections that stay open. */
  readonly exchanges: number
  /** Whatever was not answered, or only when it was sent again, with the time since the start. */
  readonly losses: readonly string[]
  /** Answers to unconnected sockets that came from the endpoint's own address: who told otherwise was gone. */
  readonly strays: number
}

/** Where traffic goes: a TCP service, and a UDP one. */
export interface TrafficTargets {
  readonly tcp: Target
  readonly udp: Target
}

export interface TrafficOptions {
  /** From these, UDP goes without connect() as well: one flow that stays, and such of a single datagram. They may change their endpoint. */
  readonly unconnected?: readonly Netns[]
}

export interface Traffic {
  /** Waits until every client has got through a few times more, or has not. */
  more(): Promise<void>
  stop(): Promise<TrafficReport>
}

const fewTimes = 5
/** Longer on a busy machine, which the clients would keep from doing anything else. */
const PAUSE_MS = 4
/** User Mode Linux has one slow processor: a packet that is late is sent again there, with no packet lost. */
const isSlow = process.env['UML'] === '1'

/**
 * Opens a new TCP connection from each namespace every few milliseconds, and keeps one TCP connection and one UDP flow
 * busy. A lost packet shows, however busy the machine is: of TCP the kernels of both sides tell that they sent something
 * again, and a datagram that is lost is never answered.
 */
export async function startTraffic(
  clients: readonly Netns[],
  to: TrafficTargets,
  { unconnected = [] }: TrafficOptions = {},
): Promise<Traffic> {
  const started = performance.now()
  const losses: string[] = []
  const counts = { connections: 0, exchanges: 0, strays: 0 }
  const stopping = new AbortController()
  /** How often each of the loops has come round. */
  const rounds: number[] = []
  const lose = (what: string, why: string) => {
    losses.push(`${what}: ${why} after ${Math.round(performance.now() - started)} ms`)
  }
  const untilStopped = async (work: () => Promise<void>) => {
    const loop = rounds.push(0) - 1
    while (!stopping.signal.aborted) {
      await work()
      rounds[loop]!++
      await sleep(PAUSE_MS * patience())
    }
  }
  const judge = (what: string, answer: Answer, conversation: Conversation, seen: { resent: number }) => {
    if (answer.kind !== 'answered') return lose(what, answer.kind === 'failed' ? answer.code : answer.kind)
    const resent = conversation.resent() + (answer.greeting.resent ?? 0)
    if (resent > seen.resent && !isSlow) lose(what, `sent again ${resent - seen.resent} times`)
    seen.resent = resent
  }
  async function keepConnecting(netns: Netns): Promise<void> {
    const what = `a new connection from ${netns.name}`
    await untilStopped(async () => {
      counts.connections++
      const seen = { resent: 0 }
      const { answer, conversation } = await openTcp(netns, to.tcp)
      judge(what, answer, conversation, seen)
      // With the second answer the server tells whether it had to send the first again.
      if (answer.kind === 'answered') judge(what, await conversation.say('well?'), conversation, seen)
      conversation.close()
    })
  }
  async function keepSending(netns: Netns, isNew: boolean): Promise<void> {
    const what = `a datagram of ${netns.name} from ${isNew ? 'a new' : 'an old'} socket`
    const open = () => openUdp(netns, to.udp, { isUnconnected: true })
    let conversation = await open()
    await untilStopped(async () => {
      counts.exchanges++
      const answer = await conversation.say('still there?', answersWithinMs())
      const isStray = answer.kind === 'failed' && answer.code.startsWith('an answer from ')
      if (isStray) counts.strays++
      else judge(what, answer, conversation, { resent: 0 })
      if (!isNew && !isStray) return
      conversation.close()
      conversation = await open()
    })
    conversation.close()
  }
  async function keepTalking(netns: Netns, kind: 'tcp' | 'udp'): Promise<void> {
    const what = `a ${kind} flow of ${netns.name}`
    const conversation = kind === 'tcp' ? (await openTcp(netns, to.tcp)).conversation : await openUdp(netns, to.udp)
    const partners = new Set<string>()
    const seen = { resent: 0 }
    await untilStopped(async () => {
      counts.exchanges++
      const answer = await conversation.say('still there?', answersWithinMs())
      judge(what, answer, conversation, seen)
      if (answer.kind === 'answered') partners.add(answer.greeting.host)
    })
    conversation.close()
    if (partners.size > 1) losses.push(`${what} moved: ${[...partners].join(', ')}`)
  }
  const loops = clients.flatMap((netns) => [
    keepConnecting(netns),
    keepTalking(netns, 'tcp'),
    keepTalking(netns, 'udp'),
    ...(unconnected.includes(netns) ? [keepSending(netns, false), keepSending(netns, true)] : []),
  ])
  const more = () => {
    const before = [...rounds]
    const isDone = () => rounds.length === loops.length && rounds.every((n, i) => n >= (before[i] ?? 0) + fewTimes)
    return eventually(
      'all clients get through',
      () => (isDone() || losses.length > 0 ? undefined : `after ${before.join()} rounds: ${rounds.join()}`),
      { withinMs: 20_000, everyMs: 5 },
    )
  }
  // Everything is under way before the caller disturbs it.
  await more()
  return {
    more,
    async stop() {
      stopping.abort()
      await Promise.all(loops)
      return { ...counts, losses }
    },
  }
}
