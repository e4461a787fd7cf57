// What clients met lately, and in the last five minutes: from the reports of every second.

import type { LoadReport, OutcomeRow, TrafficReport } from '../protocol.ts'

/** Connections: per second, or since the page was opened. */
export interface Met {
  readonly answered: number
  readonly refused: number
  readonly timedOut: number
  readonly cut: number
  readonly retried: number
}

export const NOTHING_MET: Met = { answered: 0, refused: 0, timedOut: 0, cut: 0, retried: 0 }

/** By port, by endpoint, by pair of both, by client. `nowhere`: by port, what reached no endpoint. */
export interface MetBy {
  readonly services: ReadonlyMap<string, Met>
  readonly backends: ReadonlyMap<string, Met>
  readonly pairs: ReadonlyMap<string, Met>
  readonly nowhere: ReadonlyMap<string, Met>
  readonly clients: ReadonlyMap<string, Met>
}

/** One second. */
export interface Point {
  readonly atMs: number
  /** By `namespace/name`. */
  readonly services: ReadonlyMap<string, Second>
}

export interface Second extends Met {
  readonly connections: number
  readonly p50Ms: number | null
  readonly p99Ms: number | null
}

export interface Flow {
  /** The reports of the last seconds, the newest last. */
  readonly recent: readonly (readonly OutcomeRow[])[]
  /** Per second, over these. */
  readonly now: MetBy
  readonly total: MetBy
  /** The newest last. */
  readonly points: readonly Point[]
}

/** A rate over less would jump with every connection. */
const WINDOW = 5
const MOST_POINTS = 300
const MOST_TOTALS = 2000

const NOBODY: MetBy = {
  services: new Map(),
  backends: new Map(),
  pairs: new Map(),
  nowhere: new Map(),
  clients: new Map(),
}
export const NO_FLOW: Flow = { recent: [], now: NOBODY, total: NOBODY, points: [] }

export function addReport(flow: Flow, report: TrafficReport, load: LoadReport | null, atMs: number): Flow {
  const recent = [...flow.recent, report.outcomes].slice(-WINDOW)
  return {
    recent,
    now: sumMet(recent.flat(), 1 / recent.length),
    total: report.outcomes.length === 0 ? flow.total : sumMet(report.outcomes, 1, flow.total),
    points: [...flow.points, planPoint(report, load, atMs)].slice(-MOST_POINTS),
  }
}

export function sumMet(rows: readonly OutcomeRow[], factor: number, before: MetBy = NOBODY): MetBy {
  const by = {
    services: new Map(before.services),
    backends: new Map(before.backends),
    pairs: new Map(before.pairs),
    nowhere: new Map(before.nowhere),
    clients: new Map(before.clients),
  }
  for (const row of rows) {
    add(by.services, row.service, row, factor)
    add(by.clients, row.client, row, factor)
    if (row.backend === null) add(by.nowhere, row.service, row, factor)
    else {
      add(by.backends, row.backend, row, factor)
      add(by.pairs, `${row.service}|${row.backend}`, row, factor)
    }
  }
  return by
}

function add(map: Map<string, Met>, key: string, row: Met, factor: number): void {
  if (map.size >= MOST_TOTALS && !map.has(key)) return
  map.set(key, plus(map.get(key) ?? NOTHING_MET, row, factor))
}

function plus(a: Met, b: Met, factor = 1): Met {
  return {
    answered: a.answered + b.answered * factor,
    refused: a.refused + b.refused * factor,
    timedOut: a.timedOut + b.timedOut * factor,
    cut: a.cut + b.cut * factor,
    retried: a.retried + b.retried * factor,
  }
}

export function addMet(...all: readonly (Met | undefined)[]): Met {
  return all.reduce<Met>((sum, each) => (each === undefined ? sum : plus(sum, each)), NOTHING_MET)
}

export function failedOf({ refused, timedOut, cut }: Met): number {
  return refused + timedOut + cut
}

/** On a node nobody says what became of connections: there, refusals are what the rules turned away. */
function planPoint({ nodes, outcomes }: TrafficReport, load: LoadReport | null, atMs: number): Point {
  const services = new Map<string, { -readonly [Name in keyof Second]: Second[Name] }>()
  const of = (port: string) => {
    const id = serviceOfPort(port)
    let found = services.get(id)
    if (found === undefined) services.set(id, (found = { ...NOTHING_MET, connections: 0, p50Ms: null, p99Ms: null }))
    return found
  }
  for (const row of outcomes) {
    const second = of(row.service)
    Object.assign(second, plus(second, row))
    second.connections += row.answered + failedOf(row)
  }
  const isTold = outcomes.length > 0
  for (const { rows } of nodes) {
    for (const { service, frontend, connections, refused, dropped } of rows) {
      if (frontend === null || (isTold && frontend.startsWith('tcp '))) continue
      const second = of(service)
      second.connections += connections + refused + dropped
      second.refused += refused
      second.timedOut += dropped
    }
  }
  if (load?.running === true) {
    const second = of(load.request.to)
    second.p50Ms = load.medianMs
    second.p99Ms = load.p99Ms
  }
  return { atMs, services }
}

export function serviceOfPort(port: string): string {
  const end = port.indexOf(':')
  return end < 0 ? port : port.slice(0, end)
}

/** A second of one service; '' is all of them. */
export function secondOf({ services }: Point, service: string): Second {
  const all = service === '' ? [...services.values()] : [services.get(service)].filter((each) => each !== undefined)
  const [only] = all
  if (all.length === 1) return only!
  const known = all.find(({ p50Ms }) => p50Ms !== null)
  return {
    ...addMet(...all),
    connections: all.reduce((sum, { connections }) => sum + connections, 0),
    p50Ms: known?.p50Ms ?? null,
    p99Ms: known?.p99Ms ?? null,
  }
}
