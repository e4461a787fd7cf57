// `--send`: a real packet, from here, with nftables tracing for exactly that flow.

import { createSocket } from 'node:dgram'
import { connect, Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../../lib/errors.ts'
import { joinHostPort } from '../../lib/ip.ts'
import { inNetwork } from '../../system/netns.ts'
import type { Walkable } from '../../packet-walk/types.ts'
import { Trace, type TracedRule } from '../../nftables/open-trace.ts'
import type { FlowToTrace } from '../../nftables/trace-table.ts'
import { phrase } from './compare.ts'
import type { Decision } from './decide.ts'
import { dropsBetween, droppedElsewhere, type ElsewhereDropped, explainDrops, watchDrops } from './drops.ts'
import type { KernelState, Prepared } from './explain.ts'
import type { ExplainedSending } from './explanation.ts'
import type { Known } from './known.ts'
import { departFrom, networkWith } from './networks.ts'
import { dropIn, followTrace, type Traced, type TracedFlow } from './trace.ts'

const PATIENCE_MS = 2000
/** The kernel sends the trace of a packet a little after the packet. */
const SETTLE_MS = 200

/** A client that is not this node: where its sockets come from, as file descriptors that are bound to the address and the port. */
export type Departure = (transport: 'tcp' | 'udp', address: string, port: number) => number

/** Opens a connection elsewhere, in the network of a pod, and says what came back. */
export type Sender = (flow: TracedFlow, protocol: 'TCP' | 'UDP', patienceMs: number) => Promise<string>

export interface HowToSend {
  readonly departure?: Departure | undefined
  /** Sends it in place of this process. */
  readonly sender?: Sender | undefined
  /** What was read of the kernel: where it leads to a process that carries the connection on, that is all a trace can show. */
  readonly state?: KernelState | undefined
}

/** Throws when it cannot be sent from here. */
export async function sendPacket(
  { asked, decision, known }: Prepared,
  { departure: given, sender, state }: HowToSend = {},
): Promise<ExplainedSending> {
  const { connection, family } = asked
  const isOwn = connection.inputInterface === undefined
  const network = isOwn || given !== undefined || sender !== undefined ? undefined : networkWith(connection.source)
  const departure = network === undefined ? given : departFrom(network)
  if (!isOwn && departure === undefined && sender === undefined) {
    throw new Error(
      `Cannot send from ${asked.fromLabel}: --send sends from this node, and from pods whose network namespaces it may enter; omit FROM, or use node`,
    )
  }
  const { protocol } = connection
  if (protocol === 'SCTP' || protocol === 'ICMP')
    throw new Error(`Cannot send ${protocol}: --send supports TCP and UDP`)
  const flow: TracedFlow = {
    source: connection.source,
    sourcePort: clientPort(),
    destination: connection.destination,
    destinationPort: connection.port,
  }
  const { answer, trace, drops, dropsError } = await followPacket(flow, {
    family,
    protocol,
    around: aroundOf(decision, known),
    departure,
    ...(sender === undefined ? {} : { send: () => sender(flow, protocol, PATIENCE_MS) }),
  })
  return {
    from: joinHostPort(flow.source, flow.sourcePort),
    answer,
    trace: trace.lines,
    outcome: trace.outcome,
    destination: trace.destination,
    droppedBy: trace.droppedBy,
    drops,
    dropsError,
    differences: differencesOf(decision, trace, state?.kind === 'walkable' ? state.walkable.endsAt : undefined),
  }
}

export interface HowToFollow {
  readonly family: 4 | 6
  readonly protocol: 'TCP' | 'UDP'
  /** Addresses and ports that its packets may have on the way. */
  readonly around: { readonly addresses: readonly string[]; readonly ports: readonly number[] }
  readonly departure?: Departure | undefined
  /** Nobody gives it another port on the way: packets of other ports are of other connections. */
  readonly keepsPort?: boolean
  /** Sends it in place of this process. */
  readonly send?: () => Promise<string>
}

export interface FollowedPacket extends Pick<ExplainedSending, 'answer' | 'drops' | 'dropsError'> {
  readonly trace: Traced
}

/** Sends the first packet of a connection, with nftables tracing it and the kernel saying what it drops. */
export async function followPacket(
  flow: TracedFlow,
  {
    family,
    protocol,
    around,
    departure,
    keepsPort = false,
    send = () => (protocol === 'TCP' ? openTcp(flow, departure) : sendUdp(flow, family, departure)),
  }: HowToFollow,
): Promise<FollowedPacket> {
  const table = `kube-proxy-explain-${process.pid}`
  const watch = watchDrops([flow.sourcePort, flow.destinationPort, ...around.ports])
  try {
    const { answer, traced } = await withTracing({ table, flow: { family, protocol, ...flow } }, send)
    const trace = followTrace(traced, flow, table)
    if ('why' in watch) return { answer, trace, drops: null, dropsError: watch.why }
    const addresses = new Set([flow.source, flow.destination, ...around.addresses])
    // What was answered was not dropped, apart from what the kernel throws away when a connection ends.
    if (isAnswered(answer)) return { answer, trace, drops: [], dropsError: null }
    const found = dropsBetween(watch.read(), addresses, { clientPort: flow.sourcePort, keepsPort })
    const drops = explainDrops(found)
    const elsewhere = droppedElsewhere(found)
    if (elsewhere === undefined) return { answer, trace, drops, dropsError: null }
    const rule = await traceElsewhere(elsewhere, { family, protocol, send })
    return {
      answer,
      trace,
      drops: drops.map((drop) => (drop.where === elsewhere.where ? { ...drop, rule } : drop)),
      dropsError: null,
    }
  } finally {
    if (!('why' in watch)) watch.close()
  }
}

/** Sends another packet, with tracing in the network where a rule dropped the first: by which one? */
async function traceElsewhere(
  { path, destination, destinationPort }: ElsewhereDropped,
  { family, protocol, send }: Required<Pick<HowToFollow, 'family' | 'protocol' | 'send'>>,
): Promise<string | null> {
  let trace: Trace | undefined
  try {
    const flow = { family, protocol, destination, destinationPort }
    trace = inNetwork(path, () => new Trace(`kube-proxy-explain-${process.pid}`, flow))
    await send()
    await sleep(SETTLE_MS)
    return inNetwork(path, () => dropIn(trace!.read()))
  } catch {
    // It may have no nftables, or be gone: what the kernel said before is still true.
    return null
  } finally {
    trace?.close()
  }
}

export function isAnswered(answer: string): boolean {
  return answer === 'connected' || answer === 'answered'
}

/** A client port of this range is free on most machines. */
export function clientPort(): number {
  return 40_000 + Math.floor(Math.random() * 20_000)
}

function aroundOf({ backends }: Decision, { machineAddresses }: Known): HowToFollow['around'] {
  return {
    addresses: [...machineAddresses, ...backends.map(({ ip }) => ip)],
    ports: backends.map(({ port }) => port),
  }
}

export function differencesOf(
  { outcome, backends, isRelayed }: Decision,
  trace: Traced,
  endsAt?: Walkable['endsAt'],
): string[] {
  if (trace.outcome === 'unknown' || (isRelayed === true && trace.outcome === 'untouched')) return []
  const { droppedBy } = trace
  if (trace.outcome !== outcome) {
    const by = droppedBy === null ? '' : `, by ${droppedBy}`
    return [`predicted: ${phrase(outcome)}; the packet was ${phrase(trace.outcome)}${by}`]
  }
  if (outcome !== 'to' || endsAt !== undefined) return []
  const isSaid = backends.some(({ ip, port, eligible }) => eligible && joinHostPort(ip, port) === trace.destination)
  return isSaid ? [] : [`the packet went to ${trace.destination}, which is not an eligible endpoint`]
}

interface Tracing {
  readonly table: string
  readonly flow: FlowToTrace
}

async function withTracing(
  { table, flow }: Tracing,
  send: () => Promise<string>,
): Promise<{ traced: readonly TracedRule[]; answer: string }> {
  // The kernel removes the table when the process ends.
  const onSignal = () => process.exit(130)
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal)
  let trace: Trace | undefined
  try {
    trace = openTrace(table, flow)
    const answer = await send()
    await sleep(SETTLE_MS)
    return { traced: trace.read(), answer }
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal)
    trace?.close()
  }
}

function openTrace(table: string, flow: FlowToTrace): Trace {
  try {
    return new Trace(table, flow)
  } catch (error) {
    throw new Error(`Cannot trace a packet: ${messageOf(error)}`, { cause: error })
  }
}

function openTcp(flow: TracedFlow, departure: Departure | undefined): Promise<string> {
  const { destination: host, destinationPort: port, source, sourcePort } = flow
  return new Promise((resolve) => {
    const socket =
      departure === undefined
        ? connect({ host, port, localAddress: source, localPort: sourcePort })
        : new Socket({ fd: departure('tcp', source, sourcePort) }).connect({ host, port })
    const finish = (answer: string) => {
      clearTimeout(timer)
      socket.destroy()
      resolve(answer)
    }
    const timer = setTimeout(() => finish(`no answer within ${PATIENCE_MS} ms`), PATIENCE_MS)
    socket.once('connect', () => finish('connected'))
    socket.once('error', (error: NodeJS.ErrnoException) =>
      finish(error.code === 'ECONNREFUSED' ? 'refused' : (error.code ?? error.message)),
    )
  })
}

function sendUdp(flow: TracedFlow, family: 4 | 6, departure: Departure | undefined): Promise<string> {
  const { destination, destinationPort, source, sourcePort } = flow
  return new Promise((resolve) => {
    const socket = createSocket(family === 4 ? 'udp4' : 'udp6')
    const finish = (answer: string) => {
      clearTimeout(timer)
      socket.close()
      resolve(answer)
    }
    const timer = setTimeout(() => finish('sent; no answer, which UDP does not promise'), PATIENCE_MS / 2)
    socket.once('message', () => finish('answered'))
    socket.once('error', (error: NodeJS.ErrnoException) =>
      finish(error.code === 'ECONNREFUSED' ? 'refused' : (error.code ?? error.message)),
    )
    const where =
      departure === undefined
        ? { address: source, port: sourcePort }
        : { fd: departure('udp', source, sourcePort), exclusive: true }
    socket.bind(where, () => {
      socket.connect(destinationPort, destination, () => socket.send('?'))
    })
  })
}
