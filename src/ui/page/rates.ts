// What flows now, by service and by backend, for all nodes together.

import type { TrafficReport, TrafficRow } from '../protocol.ts'

export interface Rate {
  /** All per second. */
  readonly connections: number
  readonly packets: number
  readonly bytes: number
  readonly refused: number
  readonly dropped: number
}

export interface Rates {
  /** By `port id|backend address`. */
  readonly pairs: ReadonlyMap<string, Rate>
  /** By port id: all of it, refusals included. */
  readonly ports: ReadonlyMap<string, Rate>
  /** By `port id|address of the frontend`. */
  readonly frontends: ReadonlyMap<string, Rate>
}

export const NO_RATE: Rate = { connections: 0, packets: 0, bytes: 0, refused: 0, dropped: 0 }
export const NO_RATES: Rates = { pairs: new Map(), ports: new Map(), frontends: new Map() }

export function sumRates(report: TrafficReport | null): Rates {
  if (report === null) return NO_RATES
  const pairs = new Map<string, Rate>()
  const ports = new Map<string, Rate>()
  const frontends = new Map<string, Rate>()
  for (const { rows } of report.nodes) {
    for (const row of rows) {
      if (row.backend !== null) addTo(pairs, `${row.service}|${row.backend}`, row)
      if (row.frontend === null) continue
      addTo(ports, row.service, row)
      addTo(frontends, `${row.service}|${row.frontend}`, row)
    }
  }
  return { pairs, ports, frontends }
}

export function addRates(...rates: readonly (Rate | undefined)[]): Rate {
  let sum = NO_RATE
  for (const rate of rates) if (rate !== undefined) sum = plus(sum, rate)
  return sum
}

function addTo(map: Map<string, Rate>, key: string, row: TrafficRow): void {
  map.set(key, plus(map.get(key) ?? NO_RATE, row))
}

function plus(a: Rate, b: Rate): Rate {
  return {
    connections: a.connections + b.connections,
    packets: a.packets + b.packets,
    bytes: a.bytes + b.bytes,
    refused: a.refused + b.refused,
    dropped: a.dropped + b.dropped,
  }
}

/** `12/s`, `0.4/s`; '' for nothing. */
export function formatPerSecond(value: number): string {
  if (value <= 0) return ''
  if (value >= 10_000) return `${Math.round(value / 1000)}k/s`
  if (value >= 10) return `${Math.round(value)}/s`
  return `${Math.round(value * 10) / 10}/s`
}

export function formatBytes(value: number): string {
  if (value < 1000) return `${Math.round(value)} B`
  if (value < 1_000_000) return `${(value / 1000).toFixed(1)} kB`
  return `${(value / 1_000_000).toFixed(1)} MB`
}

/** `0.8 ms`, `12 ms`, `3.4 s`. */
export function formatMs(ms: number): string {
  if (ms < 10) return `${Math.round(ms * 10) / 10} ms`
  if (ms < 1000) return `${Math.round(ms)} ms`
  return `${(ms / 1000).toFixed(1)} s`
}
