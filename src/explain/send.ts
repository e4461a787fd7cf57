// `--send`: a real packet, from here, with nftables tracing for exactly that flow.
//
// The table that switches the tracing on belongs to a process of nft (`flags owner`): when that ends, or this one, for whatever
// reason, the kernel takes the table away.

import { spawn, type ChildProcess } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { connect, Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { joinHostPort } from '../lib/ip.ts'
import type { Walkable } from '../lib/packet-walk.ts'
import { runProgram } from '../system/run-program.ts'
import { phrase } from './compare.ts'
import type { Decision } from './decide.ts'
import type { KernelState, Prepared } from './explain.ts'
import type { ExplainedSending } from './explanation.ts'
import { parseTrace, type Traced, type TracedFlow } from './trace.ts'

const PATIENCE_MS = 2000
/** The trace of a packet comes a little after the packet. */
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
  { asked, decision }: Prepared,
  { departure, sender, state }: HowToSend = {},
): Promise<ExplainedSending> {
  const { connection, family } = asked
  if (connection.inputInterface !== undefined && departure === undefined && sender === undefined) {
    throw new Error(
      `Cannot send from ${asked.fromWords}: --send sends from this node, or with --sandbox from one of its pods; leave FROM out, or say node`,
    )
  }
  const { protocol } = connection
  if (protocol === 'SCTP') throw new Error('Cannot send SCTP: --send knows TCP and UDP')
  const flow: TracedFlow = {
    source: connection.source,
    sourcePort: 40_000 + Math.floor(Math.random() * 20_000),
    destination: connection.destination,
    destinationPort: connection.port,
  }
  const table = `kube-proxy-explain-${process.pid}`
  const traced = await withTracing({ table, family: family === 4 ? 'ip' : 'ip6', flow, protocol }, () => {
    if (sender !== undefined) return sender(flow, protocol, PATIENCE_MS)
    return protocol === 'TCP' ? openTcp(flow, departure) : sendUdp(flow, family, departure)
  })
  const trace = parseTrace(traced.trace, flow, table)
  return {
    from: joinHostPort(flow.source, flow.sourcePort),
    answer: traced.answer,
    trace: trace.lines,
    outcome: trace.outcome,
    destination: trace.destination,
    differences: differencesOf(decision, trace, state?.kind === 'walkable' ? state.walkable.endsAt : undefined),
  }
}

export function differencesOf({ outcome, backends }: Decision, trace: Traced, endsAt?: Walkable['endsAt']): string[] {
  if (trace.outcome === 'unknown') return []
  if (trace.outcome !== outcome) return [`said: ${phrase(outcome)}; the packet was ${phrase(trace.outcome)}`]
  if (outcome !== 'to' || endsAt !== undefined) return []
  const isSaid = backends.some(({ ip, port, eligible }) => eligible && joinHostPort(ip, port) === trace.destination)
  return isSaid ? [] : [`the packet went to ${trace.destination}, which is not an eligible endpoint`]
}

interface Tracing {
  readonly table: string
  readonly family: 'ip' | 'ip6'
  readonly flow: TracedFlow
  readonly protocol: 'TCP' | 'UDP'
}

async function withTracing(tracing: Tracing, send: () => Promise<string>): Promise<{ trace: string; answer: string }> {
  const { code } = await runProgram('nft', ['--version'])
  if (code !== 0) throw new Error('Cannot trace a packet: --send needs the program nft')
  const started: ChildProcess[] = []
  const stopAll = () => {
    for (const child of started) child.kill('SIGTERM')
  }
  const onSignal = () => {
    stopAll()
    process.exit(130)
  }
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal)
  try {
    let trace = ''
    const monitor = spawn('nft', ['monitor', 'trace'], { stdio: ['ignore', 'pipe', 'ignore'] })
    started.push(monitor)
    monitor.stdout.setEncoding('utf8').on('data', (text: string) => (trace += text))
    const owner = spawn('nft', ['-i'], { stdio: ['pipe', 'ignore', 'pipe'] })
    started.push(owner)
    let complaint = ''
    owner.stderr.setEncoding('utf8').on('data', (text: string) => (complaint += text))
    owner.stdin.write(`${tableText(tracing)}\n`)
    await untilThere(tracing, () => complaint)
    await untilListening(monitor.pid)
    const answer = await send()
    await sleep(SETTLE_MS)
    return { trace, answer }
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal)
    stopAll()
    await untilGone(tracing)
  }
}

/** In one line, as nft reads it when it is asked interactively. */
function tableText({ table, family, flow, protocol }: Tracing): string {
  const name = protocol.toLowerCase()
  const match = `${family} daddr ${flow.destination} ${name} sport ${flow.sourcePort} ${name} dport ${flow.destinationPort}`
  const chain = (hook: string) =>
    `chain ${hook} { type filter hook ${hook} priority -400; ${match} meta nftrace set 1; };`
  return `table ${family} ${table} { flags owner; ${chain('output')} ${chain('prerouting')} }`
}

async function isThere({ family, table }: Tracing): Promise<boolean> {
  return (await runProgram('nft', ['list', 'table', family, table])).code === 0
}

async function untilThere(tracing: Tracing, complaint: () => string): Promise<void> {
  for (const startMs = Date.now(); Date.now() - startMs < 5000; await sleep(20)) {
    if (complaint() !== '') break
    if (await isThere(tracing)) return
  }
  throw new Error(`Cannot trace a packet: nft says ${complaint().trim() || 'nothing'}`)
}

const NETLINK_NETFILTER = '12'
/** The bit of NFNLGRP_NFTRACE. */
const TRACE_GROUP = 1 << 8

/** nft does not say when it listens; the kernel does. A trace that begins before is lost. */
async function untilListening(pid: number | undefined): Promise<void> {
  for (const startMs = Date.now(); Date.now() - startMs < 5000; await sleep(5)) if (isListening(pid)) return
}

function isListening(pid: number | undefined): boolean {
  try {
    const files = readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`))
    const lines = readFileSync(`/proc/${pid}/net/netlink`, 'latin1').split('\n')
    return lines.some((line) => {
      const [, protocol, , groups = '0', , , , , , inode] = line.trim().split(/\s+/)
      const isTrace = protocol === NETLINK_NETFILTER && (parseInt(groups, 16) & TRACE_GROUP) !== 0
      return isTrace && files.includes(`socket:[${inode}]`)
    })
  } catch {
    // It ended; the packet is sent all the same, and its trace is empty.
    return true
  }
}

async function untilGone(tracing: Tracing): Promise<void> {
  for (const startMs = Date.now(); Date.now() - startMs < 5000; await sleep(20)) {
    if (!(await isThere(tracing))) return
  }
  throw new Error(`Cannot remove the table of the trace: nft delete table ${tracing.family} ${tracing.table}`)
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
