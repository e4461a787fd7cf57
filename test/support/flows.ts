// Sends the packets of a flow of the packet-flow table and compares what becomes of them.

import { crowdIp } from './addresses.ts'
import { pingProbe } from './netns/ping.ts'
import { sctpProbe } from './netns/sctp.ts'
import { tcpProbe, udpProbe } from './netns/probe.ts'
import type { Answer } from './netns/probe.ts'
import type { Answerer, Destination, Flow, Outcome, Source } from '../conformance/packet-flow.ts'
import type { Netns } from './netns/netns.ts'

/** Where flows are tried. */
export interface FlowStage {
  /** The namespace of each source. */
  readonly sources: Readonly<Record<Source, Netns>>
  /** Whether an address belongs to the node that the flow passes first: whom a backend sees when that node masquerades. */
  isNode(address: string, flow: Flow): boolean
  /** Whether sockets of pods may choose: then no rule sees the connection, and nothing masquerades it. */
  readonly balancesSockets?: boolean
  /** What a packet that no rule touches meets at its destination: the kind of the answer, or the code of a failure. */
  withoutProxy(flow: Flow): string
}

/**
 * Absence has no event to wait for. By then a TCP client has sent a second time: what got lost once is not taken for what
 * was dropped.
 */
export const silentForMs = 1300

/** Tries a flow; empty when the outcome is as promised, else what happened instead. */
export async function tryFlow(stage: FlowStage, flow: Flow): Promise<string[]> {
  const { outcome } = flow
  const complaint =
    outcome.kind === 'to' ? await tryBackends(stage, flow, outcome) : await tryOnce(stage, flow, outcome.kind)
  const { address, port, protocol } = flow.to
  return complaint === undefined ? [] : [`${flow.from} to ${address} port ${port}/${protocol}: ${complaint}`]
}

async function tryOnce(stage: FlowStage, flow: Flow, kind: 'reject' | 'drop' | 'untouched') {
  const expected = kind === 'untouched' ? stage.withoutProxy(flow) : kind === 'reject' ? 'refused' : 'silent'
  // A reject that arrives while the client holds the lock of its socket counts only when it sends again, a second later.
  const answer = await probe(stage, flow, expected === 'silent' ? { timeoutMs: silentForMs } : {})
  if (codeOf(answer) !== expected) return `expected ${kind} (${expected}), got ${show(answer)}`
  if (answer.kind !== 'answered') return undefined
  // Only a TCP server is told which of its addresses was asked.
  const cameStraight = flow.to.protocol !== 'TCP' || answer.greeting.at === flow.to.address
  return cameStraight && answer.greeting.seenAs === answer.client
    ? undefined
    : `expected to be left alone, got ${show(answer)}`
}

async function tryBackends(stage: FlowStage, flow: Flow, outcome: Outcome & { kind: 'to' }) {
  const family = flow.to.address.includes(':') ? 6 : 4
  const clients = flow.clients === undefined ? [undefined] : range(flow.clients).map((n) => crowdIp(family, n + 1))
  const missing = new Set(outcome.backends.map(name))
  const tryClient = async (from: string | undefined): Promise<string | undefined> => {
    const seenByClient = new Set<string>()
    for (const _ of range(attemptsFor(outcome))) {
      const answer = await probe(stage, flow, from === undefined ? {} : { from })
      const complaint = judge(stage, { flow, outcome, answer })
      if (complaint !== undefined) return complaint
      if (answer.kind !== 'answered') continue
      missing.delete(name(answer.greeting))
      seenByClient.add(name(answer.greeting))
      if (outcome.sticky && seenByClient.size > 1) return `not sticky: came to ${[...seenByClient].join(' and ')}`
      if (!outcome.sticky && missing.size === 0 && seenByClient.size > 1) break
    }
    return undefined
  }
  // All at once: what a client finds after a while must not depend on how long the others took.
  const complaints = await Promise.all(clients.map(tryClient))
  const [complaint] = complaints.filter((each) => each !== undefined)
  if (complaint !== undefined) return complaint
  const allExpected = outcome.byLoad !== true && (!outcome.sticky || flow.clients !== undefined)
  return allExpected && missing.size > 0 ? `never came to ${[...missing].join(', ')}` : undefined
}

/** So many that missing one of the backends by chance happens once in billions. */
function attemptsFor(outcome: Outcome & { kind: 'to' }): number {
  if (outcome.sticky) return 5
  return outcome.backends.length === 1 ? 4 : 20 * outcome.backends.length
}

function judge(
  stage: FlowStage,
  { flow, outcome, answer }: { flow: Flow; outcome: Outcome & { kind: 'to' }; answer: Answer },
): string | undefined {
  const expected = `expected ${outcome.backends.map(name).join(' or ')} seeing the ${outcome.seenAs}`
  if (answer.kind !== 'answered') return `${expected}, got ${show(answer)}`
  const { greeting, client } = answer
  const isBackend = outcome.backends.some((backend) => name(backend) === name(greeting))
  const isMasqueraded = stage.isNode(greeting.seenAs, flow) && (flow.from === 'node' || greeting.seenAs !== client)
  const isSeenRight = outcome.seenAs === 'client' ? greeting.seenAs === client : isMasqueraded
  const isUnmasqueraded = stage.balancesSockets === true && greeting.seenAs === client
  return isBackend && (isSeenRight || isUnmasqueraded) ? undefined : `${expected}, got ${show(answer)}`
}

/**
 * Each probe has a port of its own, of those that no server uses and the kernel gives to no connection. IPVS tells connections
 * apart by client and backend: two with one client port, through different addresses of services, to one backend, are the
 * same to it until the first is forgotten.
 */
const probePorts = { first: 10_300, last: 29_900 }
let lastPort = probePorts.last

export function nextProbePort(): number {
  return (lastPort = lastPort === probePorts.last ? probePorts.first : lastPort + 1)
}

function probe(stage: FlowStage, flow: Flow, wish: { from?: string; timeoutMs?: number }): Promise<Answer> {
  const { from, to, outcome } = flow
  // Only these choose. A refusal is told to connected ones alone.
  const isUnconnected = stage.balancesSockets === true && to.protocol === 'UDP' && outcome.kind === 'to'
  return probeOnce(stage.sources[from], to, { ...wish, isUnconnected })
}

/** One connection, or one datagram, from a port of its own. */
export function probeOnce(
  netns: Netns,
  to: Destination,
  wish: { from?: string; fromPort?: number; timeoutMs?: number; isUnconnected?: boolean },
): Promise<Answer> {
  const options = { fromPort: nextProbePort(), ...wish }
  switch (to.protocol) {
    case 'TCP':
      return tcpProbe(netns, to, options)
    case 'UDP':
      return udpProbe(netns, to, options)
    case 'SCTP':
      return sctpProbe(netns, to, options)
    case 'ICMP':
      return pingProbe(netns, to.address, options)
  }
}

function name(backend: Answerer | { host: string; port: number }): string {
  return `${backend.host}:${backend.port}`
}

function codeOf(answer: Answer): string {
  return answer.kind === 'failed' ? answer.code : answer.kind
}

function show(answer: Answer): string {
  if (answer.kind !== 'answered') return codeOf(answer)
  const { greeting, client } = answer
  return `an answer of ${name(greeting)}, which sees ${client} as ${greeting.seenAs}`
}

function range(length: number): number[] {
  return Array.from({ length }, (_, i) => i)
}
