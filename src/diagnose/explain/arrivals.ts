// What becomes, on this node, of packets that another one sends to an endpoint: whether they arrive, and what drops them.

import { setTimeout as sleep } from 'node:timers/promises'
import type { Drop } from '../../bpf/drop-watch.ts'
import { Trace, type TracedRule } from '../../nftables/open-trace.ts'
import type { FlowToTrace } from '../../nftables/trace-table.ts'
import { inNetwork } from '../../system/netns.ts'
import { droppedElsewhere, explainDrops, watchDrops } from './drops.ts'
import type { ExplainedSending } from './explanation.ts'
import { dropIn } from './trace.ts'

export interface Arrival extends Pick<ExplainedSending, 'droppedBy' | 'drops' | 'dropsError'> {
  readonly hasCome: boolean
}

export interface HowToAwait {
  readonly patienceMs: number
  /** From now on, nothing is missed. */
  readonly onReady: () => void
}

const POLL_MS = 100
/** A client sends again after one second, and after two more. */
const SENT_AGAIN_MS = 3500

/** Until one is dropped, or the time is over. */
export async function awaitArrival(flow: FlowToTrace, { patienceMs, onReady }: HowToAwait): Promise<Arrival> {
  const watch = watchDrops([flow.destinationPort])
  const trace = new Trace(`kube-proxy-arrivals-${process.pid}`, flow)
  try {
    const traced: TracedRule[] = []
    const dropped: Drop[] = []
    onReady()
    await until(patienceMs, () => {
      traced.push(...trace.read())
      if (!('why' in watch)) dropped.push(...watch.read().filter((drop) => isOf(flow, drop)))
      return dropIn(traced) !== null || dropped.length > 0
    })
    const arrival = { hasCome: traced.length > 0, droppedBy: dropIn(traced) }
    if ('why' in watch) return { ...arrival, drops: null, dropsError: watch.why }
    const elsewhere = droppedElsewhere(dropped)
    const rule = elsewhere === undefined ? null : await ruleIn(elsewhere.path, flow)
    const drops = explainDrops(dropped).map((drop) => (drop.where === elsewhere?.where ? { ...drop, rule } : drop))
    return { ...arrival, drops, dropsError: null }
  } finally {
    trace.close()
    if (!('why' in watch)) watch.close()
  }
}

/** What a switch sends to everybody, and what ends with its connection, is no loss. */
function isOf({ destination }: FlowToTrace, drop: Drop): boolean {
  if (drop.reason === 'OTHERHOST' || drop.reason === 'QUEUE_PURGE') return false
  return drop.destination === destination || drop.source === destination
}

/** The rule in the network of a pod, by a packet that is sent again. */
async function ruleIn(path: string, flow: FlowToTrace): Promise<string | null> {
  let trace: Trace | undefined
  try {
    trace = inNetwork(path, () => new Trace(`kube-proxy-arrivals-${process.pid}`, flow))
    const traced: TracedRule[] = []
    await until(SENT_AGAIN_MS, () =>
      inNetwork(path, () => traced.push(...trace!.read()) > 0 && dropIn(traced) !== null),
    )
    return dropIn(traced)
  } catch {
    // It may have no nftables, or be gone: what the kernel said before is still true.
    return null
  } finally {
    trace?.close()
  }
}

async function until(patienceMs: number, isOver: () => boolean): Promise<void> {
  const endMs = performance.now() + patienceMs
  while (!isOver() && performance.now() < endMs) await sleep(POLL_MS)
}
