// `--traffic-metrics`: what the kernel has counted as metrics, by service port; so many of them, and the rest as `other`.

import type { TrafficAnswer, TrafficCounts, TrafficRow } from '../control/traffic.ts'
import type { Clock, Timer } from '../lib/clock.ts'
import type { Logger } from '../lib/log.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Traffic } from './traffic.ts'

export interface TrafficMetricsOptions {
  readonly traffic: Pick<Traffic, 'keep' | 'read'>
  /** Names of those that there are now, and whether they want series of their own; undefined: if there is room. */
  readonly servicePorts: () => Iterable<readonly [string, boolean | undefined]>
  readonly metrics: Metrics
  readonly clock: Clock
  readonly log: Logger
}

/** The kernel forgets a pair without packets after five minutes: what it has counted is fetched before. */
const FETCH_MS = 60_000
/** Pages that follow each other at once show the same. */
const FRESH_MS = 1000

/** The label of those that have none of their own. No service port is called so: they have a namespace. */
export const OTHER = 'other'

export class TrafficMetrics {
  readonly #options: TrafficMetricsOptions
  #most = 0
  /** Service ports that have series of their own, in the order in which they came. */
  readonly #shown = new Set<string>()
  #wishes: ReadonlyMap<string, boolean | undefined> = new Map()
  #before: TrafficAnswer | undefined
  #readMs = -Infinity
  #timer: Timer | undefined

  constructor(options: TrafficMetricsOptions) {
    this.#options = options
    options.metrics.beforePage(() => {
      if (this.#timer !== undefined && options.clock.monotonicNow() - this.#readMs >= FRESH_MS) this.#fetch()
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
    this.#before = undefined
    this.#most = 0
  }

  #arm(): void {
    this.#timer = this.#options.clock.setTimeout(() => {
      this.#fetch()
      this.#arm()
    }, FETCH_MS)
  }

  #fetch(): void {
    const { traffic, clock, log } = this.#options
    this.#readMs = clock.monotonicNow()
    try {
      const now = traffic.read()
      if (now === undefined) return
      this.#wishes = new Map(this.#options.servicePorts())
      this.#forgetUnwanted()
      this.#add(now)
      this.#before = now
    } catch (error) {
      log.error(error, 'Cannot read the counts of traffic')
    }
  }

  #add(now: TrafficAnswer): void {
    const before = this.#before?.sinceMs === now.sinceMs ? this.#before : undefined
    const earlier = new Map((before?.rows ?? []).map((row) => [idOf(row), row]))
    for (const row of now.rows) {
      const old = earlier.get(idOf(row))
      const grown = { ...difference(row, old), refused: growth(row.refused, old?.refused) }
      if (Object.values(grown).some((value) => value > 0)) this.#count(this.#labelOf(row.service), grown)
    }
    const other = difference(now.other, before?.other)
    if (Object.values(other).some((value) => value > 0)) this.#count(OTHER, { ...other, refused: 0 })
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
    const last = [...this.#shown].findLast((name) => this.#wishes.get(name) !== true)
    if (last !== undefined) this.#hide(last)
    return last !== undefined
  }

  #count(label: string, grown: TrafficCounts & { readonly refused: number }): void {
    const { metrics } = this.#options
    metrics.trafficConnections.with(label).inc(grown.begun)
    metrics.trafficPackets.with(label, 'sent').inc(grown.sentPackets)
    metrics.trafficPackets.with(label, 'received').inc(grown.receivedPackets)
    metrics.trafficBytes.with(label, 'sent').inc(grown.sentBytes)
    metrics.trafficBytes.with(label, 'received').inc(grown.receivedBytes)
    metrics.trafficRefused.with(label).inc(grown.refused)
  }

  /** Those that are deleted, or do not want to be shown: another service port can have their place. */
  #forgetUnwanted(): void {
    for (const name of this.#shown) {
      if (!this.#wishes.has(name) || this.#wishes.get(name) === false) this.#hide(name)
    }
  }

  #hide(name: string): void {
    const { metrics } = this.#options
    this.#shown.delete(name)
    metrics.trafficConnections.remove(name)
    metrics.trafficRefused.remove(name)
    for (const direction of ['sent', 'received']) {
      metrics.trafficPackets.remove(name, direction)
      metrics.trafficBytes.remove(name, direction)
    }
  }
}

function idOf({ service, frontend, backend = '' }: TrafficRow): string {
  return `${service} ${frontend} ${backend}`
}

/** A pair that was forgotten in between begins at nothing again. */
function growth(now: number, before = 0): number {
  return now < before ? now : now - before
}

function difference(now: TrafficCounts, before: TrafficCounts | undefined): TrafficCounts {
  return {
    begun: growth(now.begun, before?.begun),
    sentPackets: growth(now.sentPackets, before?.sentPackets),
    sentBytes: growth(now.sentBytes, before?.sentBytes),
    receivedPackets: growth(now.receivedPackets, before?.receivedPackets),
    receivedBytes: growth(now.receivedBytes, before?.receivedBytes),
  }
}
