// Two answers to the question `traffic` become a table of rates.

import type { TrafficAnswer, TrafficRow } from '../serve/control/traffic.ts'

export const views = ['services', 'frontends', 'backends'] as const
export type View = (typeof views)[number]
export const sortKeys = ['connections', 'packets', 'bytes', 'refused', 'name'] as const
export type SortKey = (typeof sortKeys)[number]

/** Per second, both directions. */
export interface Rate {
  readonly name: string
  readonly connections: number
  /** Undefined where it is not known: of a stream that the proxy carries it sees no packets. */
  readonly packets: number | undefined
  readonly bytes: number
  /** Packets to frontends without endpoints. */
  readonly refused: number
  readonly ejected: boolean
  /** How an endpoint is chosen; absent: at random, or it is no service. */
  readonly balance?: string | undefined
}

export interface TableOptions {
  readonly view: View
  readonly sort: SortKey
  /** Only rows whose name has this. */
  readonly filter: string
}

interface Sum {
  connections: number
  packets: number | undefined
  bytes: number
  refused: number
  ejected: boolean
}

/** Undefined without an answer before: there is no rate yet. */
export function planRates(before: TrafficAnswer | undefined, now: TrafficAnswer, options: TableOptions): Rate[] {
  // Counting began again: these counts are new.
  const base = before?.sinceMs === now.sinceMs ? before : undefined
  const seconds = Math.max(0.001, (now.nowMs - (base?.nowMs ?? now.sinceMs)) / 1000)
  const earlier = new Map((base === undefined ? [] : linesOf(base, options.view)).map((row) => [idOf(row), row]))
  const sums = new Map<string, Sum>()
  for (const row of linesOf(now, options.view)) {
    const name = nameIn(row, options.view)
    if (name === undefined) continue
    let sum = sums.get(name)
    if (sum === undefined) sums.set(name, (sum = { connections: 0, packets: 0, bytes: 0, refused: 0, ejected: false }))
    const old = earlier.get(idOf(row))
    sum.connections += grown(row.begun, old?.begun)
    const packets = grown(row.sentPackets + row.receivedPackets, old && old.sentPackets + old.receivedPackets)
    sum.packets = row.isStream ? undefined : (sum.packets ?? 0) + packets
    sum.bytes += grown(row.sentBytes + row.receivedBytes, old && old.sentBytes + old.receivedBytes)
    sum.refused += grown(row.refused, old?.refused)
    sum.ejected ||= row.isEjected
  }
  const balances = options.view === 'services' ? now.balances : undefined
  const rates = [...sums].map(([name, { connections, packets, bytes, refused, ejected }]) => ({
    name,
    connections: connections / seconds,
    packets: packets === undefined ? undefined : packets / seconds,
    bytes: bytes / seconds,
    refused: refused / seconds,
    ejected,
    ...(balances?.[name] !== undefined && { balance: balances[name] }),
  }))
  return rates.filter(({ name }) => name.includes(options.filter)).sort((a, b) => compare(a, b, options.sort))
}

/** An element that was forgotten in between begins at nothing again. */
function grown(now: number, before: number | undefined): number {
  return before === undefined || now < before ? now : now - before
}

type Line = TrafficRow & { readonly isStream?: boolean }

/** Where the proxy carries connections itself, it knows the backends, and the kernel the frontends. */
function linesOf({ rows, carried }: TrafficAnswer, view: View): readonly Line[] {
  if (view !== 'backends' || carried === undefined) return rows
  return carried.map((row) => ({ ...row, frontend: row.protocol, refused: 0, isStream: row.protocol === 'tcp' }))
}

function idOf({ service, frontend, backend, isChosen }: TrafficRow): string {
  return `${service} ${frontend} ${backend ?? ''}${isChosen === true ? ' chosen' : ''}`
}

function nameIn({ service, frontend, backend }: TrafficRow, view: View): string | undefined {
  if (view === 'services') return service
  if (view === 'frontends') return `${service} ${frontend}`
  return backend === undefined ? undefined : `${service} ${frontend} -> ${backend}`
}

function compare(a: Rate, b: Rate, sort: SortKey): number {
  const byName = a.name < b.name ? -1 : a.name > b.name ? 1 : 0
  return sort === 'name' ? byName : (b[sort] ?? 0) - (a[sort] ?? 0) || byName
}

/** The lines of a table that fit, the heading first. */
export function formatTable(
  rates: readonly Rate[],
  options: TableOptions,
  size: { columns: number; rows: number },
): string[] {
  const head = ['conn/s', 'pkt/s', 'B/s', 'refused/s', '']
  const cells = rates
    .slice(0, Math.max(0, size.rows - 1))
    .map((rate) => [
      formatNumber(rate.connections),
      rate.packets === undefined ? '-' : formatNumber(rate.packets),
      formatNumber(rate.bytes),
      formatNumber(rate.refused),
      rate.ejected ? 'ejected' : '',
    ])
  const numbers = (row: readonly string[]) => row.map((cell, i) => cell.padStart(i === 4 ? 7 : 9)).join(' ')
  const width = Math.max(10, size.columns - numbers(head).length - 1)
  const line = (name: string, row: readonly string[]) => `${fit(name, width)} ${numbers(row)}`.trimEnd()
  const nameOf = ({ name, balance }: Rate) => (balance === undefined ? name : `${name} (${balance})`)
  return [line(options.view, head), ...cells.map((row, i) => line(nameOf(rates[i]!), row))]
}

/** `1.2k`, `34M`: three figures at most. */
export function formatNumber(value: number): string {
  const units = ['', 'k', 'M', 'G', 'T']
  let unit = 0
  let rest = value
  while (rest >= 999.5 && unit < units.length - 1) {
    rest /= 1000
    unit++
  }
  const digits = rest === 0 || rest >= 99.5 || (unit === 0 && Number.isInteger(rest)) ? 0 : rest >= 9.95 ? 1 : 2
  return `${rest.toFixed(digits)}${units[unit]}`
}

/** Whatever a name has in it, the terminal shows it and does nothing else. */
function fit(name: string, width: number): string {
  const text = name.replace(/[\p{Cc}\p{Cf}]/gu, '?')
  return text.length > width ? `${text.slice(0, width - 1)}…` : text.padEnd(width)
}
