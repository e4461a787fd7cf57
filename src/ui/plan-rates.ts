// Rates from the counters in two answers of a proxy.

import type { CarriedRow, TrafficAnswer, TrafficRow as Counted } from '../serve/control/traffic.ts'
import type { NodeTraffic, TrafficRow } from './protocol.ts'

/** `drops`: whether a frontend drops silently what it does not serve. */
export function planRates(
  before: TrafficAnswer | undefined,
  after: TrafficAnswer,
  drops: (service: string, frontend: string) => boolean,
): Omit<NodeTraffic, 'node'> {
  // Counters that were reset cannot be compared.
  const isSame = before !== undefined && before.sinceMs === after.sinceMs && after.nowMs > before.nowMs
  if (!isSame) return { error: null, overMs: 0, rows: [] }
  const overMs = after.nowMs - before.nowMs
  const earlier = new Map(before.rows.map((row) => [keyOf(row), row]))
  const rows = after.rows.flatMap((row) => {
    const moved = rateOf(row, earlier.get(keyOf(row)), overMs, drops)
    return moved.connections + moved.packets + moved.refused + moved.dropped > 0 ? [moved] : []
  })
  const carriedBefore = new Map((before.carried ?? []).map((row) => [carriedKey(row), row]))
  const carried = (after.carried ?? []).flatMap((row) => {
    const old = carriedBefore.get(carriedKey(row))
    const moved = rateOf({ ...row, ...NOT_OF_BACKENDS }, old && { ...old, ...NOT_OF_BACKENDS }, overMs, () => false)
    return moved.connections + moved.bytes > 0 ? [{ ...moved, frontend: null }] : []
  })
  return { error: null, overMs, rows: [...rows, ...carried] }
}

function rateOf(
  row: Counted,
  before: Counted | undefined,
  overMs: number,
  drops: (service: string, frontend: string) => boolean,
): TrafficRow {
  const rate = (count: (row: Counted) => number) => {
    const moved = count(row) - (before === undefined ? 0 : count(before))
    // An element that expired in the kernel begins at 0 again.
    return round(((moved < 0 ? count(row) : moved) * 1000) / overMs)
  }
  const refused = rate((each) => each.refused)
  const isDropped = refused > 0 && drops(row.service, row.frontend)
  return {
    service: row.service,
    frontend: row.frontend,
    backend: row.backend ?? null,
    connections: rate((each) => each.begun),
    packets: rate((each) => each.sentPackets + each.receivedPackets),
    bytes: rate((each) => each.sentBytes + each.receivedBytes),
    refused: isDropped ? 0 : refused,
    dropped: isDropped ? refused : 0,
    ejected: row.isEjected,
  }
}

/** A proxy that relays connections counts by backend, without the frontend. */
const NOT_OF_BACKENDS = { frontend: '', refused: 0 }

function carriedKey({ service, protocol, backend }: CarriedRow): string {
  return `${service} ${protocol} ${backend}`
}

function keyOf({ service, frontend, backend = '' }: Counted): string {
  return `${service} ${frontend} ${backend}`
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}
