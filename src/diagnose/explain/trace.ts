// The trace of a packet by the kernel: the rules that it met, where it went, and how it ended.

import { joinHostPort } from '../../lib/ip.ts'
import { TABLE_FAMILIES, type TraceEvent } from '../../nftables/bytes/trace.ts'
import type { TracedRule } from '../../nftables/open-trace.ts'
import type { Outcome } from './decide.ts'

export interface Traced {
  /** Rule by rule, as `nft monitor trace` prints them, without the packet's headers. */
  readonly lines: readonly string[]
  readonly outcome: Outcome | 'unknown'
  /** `ip:port` at the last hook that was traced. */
  readonly destination: string | null
  /** The rule, or the policy, that dropped it. */
  readonly droppedBy: string | null
}

export interface TracedFlow {
  readonly source: string
  readonly sourcePort: number
  readonly destination: string
  readonly destinationPort: number
}

/** `table` is that of the trace itself, which is left out. */
export function followTrace(traced: readonly TracedRule[], flow: TracedFlow, table: string): Traced {
  const id = traced.find(({ event }) => event.packet?.sourcePort === flow.sourcePort)?.event.id
  if (id === undefined) return { lines: [], outcome: 'unknown', destination: null, droppedBy: null }
  const own = firstPacket(
    traced.filter(({ event }) => event.id === id),
    table,
  )
  // The end of a chain is traced like a rule, without a handle.
  const met = own.filter(({ event }) => event.table !== table && !(event.type === 'rule' && event.handle === undefined))
  const packet = own.findLast(({ event }) => event.packet !== undefined)!.event.packet!
  const dialled = joinHostPort(flow.destination, flow.destinationPort)
  const destination = joinHostPort(packet.destination, packet.destinationPort)
  const dropped = met.find(({ event }) => event.verdict === 'drop' || event.policy === 'drop')
  const droppedBy = dropped === undefined ? null : placeOf(dropped)
  return { lines: met.map(formatTraced), outcome: outcomeOf(dropped, destination !== dialled), destination, droppedBy }
}

/**
 * The number of a packet is used again. It enters a hook once with the destination that was dialled; a second time it is another
 * one. With another destination it is the same packet: IPVS has translated it, and sends it through the hooks again.
 */
function firstPacket(traced: readonly TracedRule[], table: string): readonly TracedRule[] {
  const entries = traced.flatMap(({ event }, i) => (event.table === table && event.packet !== undefined ? [i] : []))
  const [first = 0, ...later] = entries
  const entryOf = (i: number) => {
    const { chain, packet } = traced[i]!.event
    return `${chain} ${packet?.destination} ${packet?.destinationPort}`
  }
  const again = later.find((i) => entryOf(i) === entryOf(first))
  return again === undefined ? traced : traced.slice(0, again)
}

/** A refusal answers and drops: the kernel traces the drop, the rule says both. */
function outcomeOf(dropped: TracedRule | undefined, moved: boolean): Outcome {
  if (dropped !== undefined) return /\breject\b/i.test(dropped.rule ?? '') ? 'reject' : 'drop'
  return moved ? 'to' : 'untouched'
}

/** The first rule or policy that drops a traced packet. */
export function dropIn(traced: readonly TracedRule[]): string | null {
  const dropped = traced.find(({ event }) => event.verdict === 'drop' || event.policy === 'drop')
  return dropped === undefined ? null : placeOf(dropped)
}

/** As the doctor names a rule. */
function placeOf({ event: { family, table, chain }, rule }: TracedRule): string {
  return `table ${TABLE_FAMILIES.get(family) ?? `family ${family}`} ${table}, chain ${chain}: ${rule ?? 'policy drop'}`
}

function formatTraced({ event, rule }: TracedRule): string {
  const { family, table, chain, type, handle, verdict, policy } = event
  const place = `${TABLE_FAMILIES.get(family) ?? `family ${family}`} ${table} ${chain}`
  if (type === 'rule') return `${place} rule ${rule ?? `${handle ?? '?'}, which is gone`} (verdict ${verdict ?? '?'})`
  return `${place} ${type === 'policy' ? `policy ${policy ?? '?'}` : `verdict ${verdict ?? '?'}`}${formatMark(event)}`
}

function formatMark({ mark = 0 }: TraceEvent): string {
  return mark === 0 ? '' : ` meta mark 0x${mark.toString(16).padStart(8, '0')}`
}
