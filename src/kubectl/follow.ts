// Follows a packet over two nodes: the one that sends it, and that of the endpoint where it was lost.

import type { Diagnosis } from '../diagnose/doctor/examine.ts'
import { formatDiagnosis } from '../diagnose/doctor/format.ts'
import { endText } from '../diagnose/doctor/packet-end.ts'
import type { LostPacket } from '../diagnose/doctor/verdict.ts'
import type { Arrival } from '../diagnose/explain/arrivals.ts'
import type { Explanation } from '../diagnose/explain/explanation.ts'
import { formatText } from '../diagnose/explain/format-text.ts'
import type { Paint } from '../diagnose/paint.ts'
import type { Cluster } from './cluster.ts'
import type { ProxyPod } from './proxies.ts'

interface Ran {
  readonly status: number
  readonly stdout: string
  readonly stderr: string
}

/** A command that sends packets, by the way its answer is read. */
interface Sending<T> {
  readonly lostIn: (answer: T) => LostPacket | undefined
  readonly format: (answer: T, paint: Paint) => string
}

const doctor: Sending<Diagnosis> = { lostIn: ({ finding }) => finding?.lost, format: formatDiagnosis }
const explain: Sending<Explanation> = { lostIn: lostInExplanation, format: formatText }

/** Long enough for both attempts of the doctor, and for packets that are sent again. */
const SECONDS = 15

export interface ToFollow {
  readonly command: 'doctor' | 'explain'
  readonly words: readonly string[]
  readonly from: ProxyPod
  readonly paint: Paint
  readonly timeoutMs: number
}

/** As text, whatever the node printed. */
export function runAndFollow(cluster: Cluster, to: ToFollow): Promise<Ran> {
  return to.command === 'doctor' ? follow(cluster, to, doctor) : follow(cluster, to, explain)
}

async function follow<T>(
  cluster: Cluster,
  { command, words, from, paint, timeoutMs }: ToFollow,
  { lostIn, format }: Sending<T>,
): Promise<Ran> {
  const run = () => cluster.run(from, ['kube-proxy', command, ...words, '-o', 'json'], { timeoutMs })
  const first = await run()
  const answer = parsed(first) as T | undefined
  const lost = answer && lostIn(answer)
  if (answer === undefined) return first
  const there = lost === undefined || lost.node === from.node ? undefined : (await cluster.proxies()).get(lost.node)
  if (lost === undefined || there?.kind !== 'kube-proxy-ts') return { ...first, stdout: format(answer, paint) }
  const { second, arrival } = await sendAgain(cluster, { there, lost, run, timeoutMs })
  const again = (parsed(second) as T | undefined) ?? answer
  return { ...second, stdout: `${format(again, paint)}\n${formatArrival(lost, arrival)}\n` }
}

async function sendAgain(
  cluster: Cluster,
  {
    there,
    lost,
    run,
    timeoutMs,
  }: {
    readonly there: ProxyPod
    readonly lost: LostPacket
    readonly run: () => Promise<Ran>
    readonly timeoutMs: number
  },
): Promise<{ readonly second: Ran; readonly arrival: Arrival | string }> {
  let [out, error] = ['', '']
  let onReady = () => {}
  const ready = new Promise<void>((resolve) => (onReady = resolve))
  const ended = cluster
    .exec(there, ['kube-proxy', 'arrivals', lost.endpoint, String(SECONDS)], {
      onStdout: (bytes) => {
        out += bytes.toString()
        if (out.includes('\n')) onReady()
      },
      onStderr: (bytes) => (error += bytes.toString()),
      signal: AbortSignal.timeout(timeoutMs + SECONDS * 1000),
    })
    .then(String, String)
    .finally(onReady)
  await ready
  const second = await run()
  const status = await ended
  const [, line = ''] = out.split('\n')
  return { second, arrival: line === '' ? error.trim() || status : (JSON.parse(line) as Arrival) }
}

/** Of the node where the endpoint is; a text says why nothing is known. */
export function formatArrival({ endpoint, node }: LostPacket, arrival: Arrival | string): string {
  if (typeof arrival === 'string') return `On ${node}: what arrives cannot be seen there: ${arrival}`
  const { hasCome, droppedBy, drops, dropsError } = arrival
  const to = endpoint.replace(/\/\w+$/, '')
  if (droppedBy !== null || (drops ?? []).length > 0)
    return `On ${node}: ${endText({ to, answer: '', droppedBy, drops, dropsError })}`
  if (!hasCome) return `On ${node}: no packet to ${to} arrived: it is lost between the machines`
  const unless = drops === null ? `, as far as rules of nftables show (${dropsError})` : ''
  return `On ${node}: packets to ${to} arrived, and were not dropped${unless}: the pod keeps silent`
}

function lostInExplanation({ sent, backends, question }: Explanation): LostPacket | undefined {
  if (sent === null || sent.droppedBy !== null || (sent.drops ?? []).length > 0) return undefined
  if (sent.answer === 'connected' || sent.answer === 'answered') return undefined
  const backend = backends.find(({ address, port }) =>
    [`${address}:${port}`, `[${address}]:${port}`].includes(sent.destination ?? ''),
  )
  return backend && { endpoint: `${sent.destination}/${question.protocol}`, node: backend.node }
}

function parsed({ stdout }: Ran): unknown {
  try {
    return JSON.parse(stdout)
  } catch {
    return undefined
  }
}
