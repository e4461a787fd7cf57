// `--traffic-metrics`: shows the counts of the kernel as metrics, for so many service ports, and for the rest as `other`.

import type { TrafficRow } from '../serve/control/traffic.ts'
import type { TrafficCounts } from '../traffic/traffic-counts.ts'
import type { Clock, Timer } from '../lib/clock.ts'
import { inPieces } from '../lib/in-pieces.ts'
import type { Logger } from '../lib/log.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Traffic, TrafficReading } from './traffic.ts'

export interface TrafficMetricsOptions {
  readonly traffic: Pick<Traffic, 'keep' | 'read'>
  /** Names of those that there are now, and whether they want series of their own; undefined: if there is room. */
  readonly servicePorts: () => Iterable<readonly [string, boolean | undefined]>
  readonly metrics: Metrics
  readonly clock: Clock
  readonly log: Logger
}

/** The kernel drops the counts of a pair without packets after five minutes: they are read before that. */
const FETCH_MS = 60_000
/** Pages that follow each other at once show the same. */
const FRESH_MS = 1000
/** The rows that are added up before other work has a turn. */
const PIECE = 1024

/** The label of those that have none of their own. No service port is called so: they have a namespace. */
export const OTHER = 'other'

export class TrafficMetrics {
  readonly #options: TrafficMetricsOptions
  #most = 0
  /** Service ports that have series of their own, in the order in which they came. */
  readonly #shown = new Set<string>()
  #wishes: ReadonlyMap<string, boolean | undefined> = new Map()
  /** All shown service ports have asked for it. Cached until the next reading: there are thousands of them. */
  #haveAllAsked = false
  /** By label. */
  readonly #series = new Map<string, LabelSeries>()
  /** What has been added up, by what it is known by. */
  #added: Added | undefined
  #readMs = -Infinity
  #fetching: Promise<void> | undefined
  #timer: Timer | undefined

  constructor(options: TrafficMetricsOptions) {
    this.#options = options
    options.metrics.beforePage(() => {
      const isFresh = options.clock.monotonicNow() - this.#readMs < FRESH_MS
      return this.#timer === undefined || isFresh ? this.#fetching : this.#fetch()
    })
  }

  /** So many service ports have series of their own; 0: nothing counts for metrics. */
  show(most: number): void {
    if (most === this.#most) return
    const { traffic, log } = this.#options
    this.close()
    this.#most = most
    if (most === 0) return
    try {
      traffic.keep(true)
    } catch (error) {
      log.error(error, 'Cannot count traffic for metrics')
      return
    }
    this.#arm()
  }

  close(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#options.traffic.keep(false)
    const { trafficConnections, trafficPackets, trafficBytes, trafficRefused } = this.#options.metrics
    for (const metric of [trafficConnections, trafficPackets, trafficBytes, trafficRefused]) metric.reset()
    this.#shown.clear()
    this.#series.clear()
    this.#added = undefined
    this.#fetching = undefined
    this.#readMs = -Infinity
    this.#most = 0
  }

  #arm(): void {
    const { clock, metrics } = this.#options
    this.#timer = clock.setTimeout(() => {
      this.#arm()
      void metrics.apart(() => (this.#timer === undefined ? undefined : this.#fetch()))
    }, FETCH_MS)
  }

  #fetch(): Promise<void> {
    this.#readMs = this.#options.clock.monotonicNow()
    const fetching = this.#fetchNow(() => this.#fetching === fetching)
    this.#fetching = fetching
    return fetching
  }

  /** `isWanted`: whether it has not been switched off meanwhile. */
  async #fetchNow(isWanted: () => boolean): Promise<void> {
    const { traffic, log, servicePorts } = this.#options
    try {
      const now = await traffic.read()
      if (now === undefined || !isWanted()) return
      this.#wishes = new Map(servicePorts())
      this.#haveAllAsked = false
      this.#forgetUnwanted()
      await this.#add(now, isWanted)
    } catch (error) {
      log.error(error, 'Cannot read the counts of traffic')
    }
  }

  async #add({ answer, ids }: TrafficReading, isWanted: () => boolean): Promise<void> {
    const { rows, other, sinceMs } = answer
    const before = this.#added?.sinceMs === sinceMs ? this.#added : undefined
    const now: Added = { sinceMs, rows: new Map(), other }
    // The kernel dropped the counts of rows that are missing: if they come back, they begin at zero.
    this.#added = now
    await inPieces(rows.keys(), PIECE, (i) => {
      if (!isWanted()) return
      const [row, id] = [rows[i]!, ids[i]!]
      const old = before?.rows.get(id)
      now.rows.set(id, row)
      if (old === undefined || !isSame(row, old)) this.#count(this.#labelOf(row.service), row, old)
    })
    if (isWanted() && (before === undefined || !isSame(other, before.other))) this.#count(OTHER, other, before?.other)
  }

  #labelOf(servicePort: string): string {
    if (this.#shown.has(servicePort)) return servicePort
    const wish = this.#wishes.get(servicePort)
    if (wish === false || (this.#shown.size >= this.#most && !(wish === true && this.#makeRoom()))) return OTHER
    this.#shown.add(servicePort)
    return servicePort
  }

  /** The last one that came without asking for it gives way to one that asks; false when all have asked. */
  #makeRoom(): boolean {
    if (this.#haveAllAsked) return false
    const last = [...this.#shown].findLast((name) => this.#wishes.get(name) !== true)
    if (last !== undefined) this.#hide(last)
    this.#haveAllAsked = last === undefined
    return last !== undefined
  }

  /** Adds the growth since the last reading. */
  #count(label: string, now: Counts, before: Counts | undefined): void {
    let series = this.#series.get(label)
    if (series === undefined) {
      if (!hasAny(now)) return
      this.#series.set(label, (series = this.#seriesOf(label)))
    }
    series.begun.inc(growth(now.begun, before?.begun))
    series.sentPackets.inc(growth(now.sentPackets, before?.sentPackets))
    series.receivedPackets.inc(growth(now.receivedPackets, before?.receivedPackets))
    series.sentBytes.inc(growth(now.sentBytes, before?.sentBytes))
    series.receivedBytes.inc(growth(now.receivedBytes, before?.receivedBytes))
    series.refused.inc(growth(now.refused ?? 0, before?.refused))
  }

  #seriesOf(label: string): LabelSeries {
    const { metrics } = this.#options
    return {
      begun: metrics.trafficConnections.with(label),
      sentPackets: metrics.trafficPackets.with(label, 'sent'),
      receivedPackets: metrics.trafficPackets.with(label, 'received'),
      sentBytes: metrics.trafficBytes.with(label, 'sent'),
      receivedBytes: metrics.trafficBytes.with(label, 'received'),
      refused: metrics.trafficRefused.with(label),
    }
  }

  /** Hides service ports that are deleted or switched off: other ones can have their places. */
  #forgetUnwanted(): void {
    for (const name of this.#shown) {
      if (!this.#wishes.has(name) || this.#wishes.get(name) === false) this.#hide(name)
    }
  }

  #hide(name: string): void {
    const { metrics } = this.#options
    this.#shown.delete(name)
    this.#series.delete(name)
    metrics.trafficConnections.remove(name)
    metrics.trafficRefused.remove(name)
    for (const direction of ['sent', 'received']) {
      metrics.trafficPackets.remove(name, direction)
      metrics.trafficBytes.remove(name, direction)
    }
  }
}

/** Only rows of service ports have refusals. */
type Counts = TrafficCounts & { readonly refused?: number }

interface Added {
  /** When counting began. */
  readonly sinceMs: number
  readonly rows: Map<string, TrafficRow>
  readonly other: TrafficCounts
}

type LabelSeries = Readonly<Record<keyof TrafficCounts | 'refused', { inc(by: number): void }>>

function isSame(a: Counts, b: Counts): boolean {
  return (
    a.sentPackets === b.sentPackets &&
    a.receivedPackets === b.receivedPackets &&
    a.begun === b.begun &&
    a.refused === b.refused &&
    a.sentBytes === b.sentBytes &&
    a.receivedBytes === b.receivedBytes
  )
}

function hasAny({ begun, sentPackets, sentBytes, receivedPackets, receivedBytes, refused = 0 }: Counts): boolean {
  return begun + sentPackets + sentBytes + receivedPackets + receivedBytes + refused > 0
}

/** If the kernel dropped the counts of a pair in between, they began at zero again. */
function growth(now: number, before = 0): number {
  return now < before ? now : now - before
}
