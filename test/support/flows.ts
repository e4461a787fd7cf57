// Sends the packets of a flow of the packet-flow table and compares what becomes of them.

import { crowdIp, echoPorts, hostAt, nodeAddresses } from './addresses.ts'
import { sctpProbe } from './netns/sctp.ts'
import { patience } from './patience.ts'
import { tcpProbe, udpProbe } from './netns/probe.ts'
import type { Answer } from './netns/probe.ts'
import type { Answerer, Flow, Outcome } from '../conformance/packet-flow.ts'
import type { TestNetwork } from './netns/test-network.ts'

/** A reject that arrives while the client holds the lock of its socket counts only when it sends again, a second later. */
const refusedWithinMs = 2500 * patience
const silentForMs = 1300

const portsByProtocol = { TCP: echoPorts.tcp, UDP: echoPorts.udp, SCTP: echoPorts.sctp } as const

/** Tries a flow; empty when the outcome is as promised, else what happened instead. */
export async function tryFlow(network: TestNetwork, flow: Flow): Promise<string[]> {
  const { outcome } = flow
  const complaint =
    outcome.kind === 'to' ? await tryBackends(network, flow, outcome) : await tryOnce(network, flow, outcome.kind)
  const { address, port, protocol } = flow.to
  return complaint === undefined ? [] : [`${flow.from} to ${address} port ${port}/${protocol}: ${complaint}`]
}

async function tryOnce(network: TestNetwork, flow: Flow, kind: 'reject' | 'drop' | 'untouched') {
  const expected = kind === 'untouched' ? withoutProxy(flow) : kind === 'reject' ? 'refused' : 'silent'
  const answer = await probe(network, flow, {
    timeoutMs: expected === 'silent' ? silentForMs : refusedWithinMs,
  })
  if (answer.kind !== expected) return `expected ${kind} (${expected}), got ${show(answer)}`
  if (answer.kind !== 'answered') return undefined
  // Only a TCP server is told which of its addresses was asked.
  const cameStraight = flow.to.protocol !== 'TCP' || answer.greeting.at === flow.to.address
  return cameStraight && answer.greeting.seenAs === answer.client
    ? undefined
    : `expected to be left alone, got ${show(answer)}`
}

/** What a packet that nobody touches meets at its destination. */
function withoutProxy({ to }: Flow): Answer['kind'] {
  const isHost = hostAt(to.address) !== undefined
  const listening = portsByProtocol[to.protocol].some((port) => port === to.port)
  if (isHost && listening) return 'answered'
  const isAnybody = isHost || nodeAddresses.includes(to.address) || ['127.0.0.1', '::1'].includes(to.address)
  return isAnybody ? 'refused' : 'silent'
}

async function tryBackends(network: TestNetwork, flow: Flow, outcome: Outcome & { kind: 'to' }) {
  const family = flow.to.address.includes(':') ? 6 : 4
  const clients = flow.clients === undefined ? [undefined] : range(flow.clients).map((n) => crowdIp(family, n + 1))
  const missing = new Set(outcome.backends.map(name))
  for (const from of clients) {
    const seenByClient = new Set<string>()
    for (const _ of range(attemptsFor(outcome))) {
      const answer = await probe(network, flow, from === undefined ? {} : { from })
      const complaint = judge(flow, outcome, answer)
      if (complaint !== undefined) return complaint
      if (answer.kind !== 'answered') continue
      missing.delete(name(answer.greeting))
      seenByClient.add(name(answer.greeting))
      if (outcome.sticky && seenByClient.size > 1) return `not sticky: came to ${[...seenByClient].join(' and ')}`
      if (!outcome.sticky && missing.size === 0 && seenByClient.size > 1) break
    }
  }
  const allExpected = !outcome.sticky || flow.clients !== undefined
  return allExpected && missing.size > 0 ? `never came to ${[...missing].join(', ')}` : undefined
}

/** So many that missing one of the backends by chance happens once in billions. */
function attemptsFor(outcome: Outcome & { kind: 'to' }): number {
  if (outcome.sticky) return 5
  return outcome.backends.length === 1 ? 4 : 20 * outcome.backends.length
}

function judge(flow: Flow, outcome: Outcome & { kind: 'to' }, answer: Answer): string | undefined {
  const expected = `expected ${outcome.backends.map(name).join(' or ')} seeing the ${outcome.seenAs}`
  if (answer.kind !== 'answered') return `${expected}, got ${show(answer)}`
  const { greeting, client } = answer
  const isBackend = outcome.backends.some((backend) => name(backend) === name(greeting))
  const isMasqueraded = nodeAddresses.includes(greeting.seenAs) && (flow.from === 'node' || greeting.seenAs !== client)
  const isSeenRight = outcome.seenAs === 'client' ? greeting.seenAs === client : isMasqueraded
  return isBackend && isSeenRight ? undefined : `${expected}, got ${show(answer)}`
}

/**
 * Each probe has a port of its own, of those that no server uses and the kernel gives to nobody. IPVS tells connections
 * apart by client and backend: two with one client port, through different addresses of services, to one backend, are the
 * same to it until the first is forgotten.
 */
const probePorts = { first: 10_300, last: 29_900 }
let lastPort = probePorts.last

function probe(network: TestNetwork, flow: Flow, wish: { from?: string; timeoutMs?: number }): Promise<Answer> {
  const netns = network.sources[flow.from]
  lastPort = lastPort === probePorts.last ? probePorts.first : lastPort + 1
  const options = { ...wish, fromPort: lastPort }
  switch (flow.to.protocol) {
    case 'TCP':
      return tcpProbe(netns, flow.to, options)
    case 'UDP':
      return udpProbe(netns, flow.to, options)
    case 'SCTP':
      return sctpProbe(netns, flow.to, options)
  }
}

function name(backend: Answerer | { host: string; port: number }): string {
  return `${backend.host}:${backend.port}`
}

function show(answer: Answer): string {
  if (answer.kind === 'failed') return answer.code
  if (answer.kind !== 'answered') return answer.kind
  const { greeting, client } = answer
  return `an answer of ${name(greeting)}, which sees ${client} as ${greeting.seenAs}`
}

function range(length: number): number[] {
  return Array.from({ length }, (_, i) => i)
}
