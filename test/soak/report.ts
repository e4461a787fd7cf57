// What a soak found, as one object, and for people.

import type { Growth, ProcessGrowth } from './growth.ts'
import type { Ledger } from './ledger.ts'
import type { SoakOptions } from './options.ts'
import { median, quantile } from './statistics.ts'

export interface Convergence {
  readonly count: number
  readonly medianMs: number
  readonly p99Ms: number
  readonly worstMs: number
}

export interface Report {
  readonly options: SoakOptions
  readonly seconds: number
  readonly made: Record<string, number>
  readonly lost: number
  readonly losses: readonly string[]
  readonly excused: Record<string, number>
  readonly slow: number
  readonly changes: Record<string, number>
  readonly faults: Record<string, number>
  readonly convergence: Convergence
  /** The worst of each kind of change, in milliseconds. */
  readonly slowest: Record<string, number>
  readonly unconverged: readonly string[]
  readonly growth: readonly ProcessGrowth[]
  readonly kernel: Record<string, readonly [start: number, end: number]>
  readonly failures: readonly string[]
}

export class Findings {
  readonly #ledger: Ledger
  readonly #growth: Growth
  readonly #convergenceMs: number[] = []
  readonly #slowest: Record<string, number> = {}
  readonly changes: Record<string, number> = {}
  readonly faults: Record<string, number> = {}
  readonly unconverged: string[] = []

  constructor(ledger: Ledger, growth: Growth) {
    this.#ledger = ledger
    this.#growth = growth
  }

  /** A change was seen, on each node after so long. */
  converged(change: string, times: readonly number[]): void {
    this.#convergenceMs.push(...times)
    this.#slowest[change] = Math.round(Math.max(this.#slowest[change] ?? 0, ...times))
  }

  /** One line while it runs. */
  line(): string {
    const { counts, lost, excused } = this.#ledger
    const seconds = Math.round((performance.now() - this.#ledger.startedMs) / 1000)
    const { medianMs, p99Ms, worstMs } = this.#convergence()
    return [
      `${seconds} s: made ${counts['new tcp'].made} tcp, ${counts['long tcp'].made} long, ${counts.udp.made} udp`,
      `lost ${lost}, excused ${excused}`,
      `${sum(this.changes)} changes (median ${ms(medianMs)}, p99 ${ms(p99Ms)}, worst ${ms(worstMs)}), ${sum(this.faults)} faults`,
      this.#growth.latest(),
    ].join('; ')
  }

  report(options: SoakOptions): Report {
    const { counts, lost, unexcused, excusedBy, slow, startedMs } = this.#ledger
    const kinds = Object.keys(this.#growth.kernelAtEnd)
    return {
      options,
      seconds: Math.round((performance.now() - startedMs) / 1000),
      made: Object.fromEntries(Object.entries(counts).map(([kind, { made }]) => [kind, made])),
      lost,
      losses: unexcused,
      excused: Object.fromEntries(excusedBy),
      slow,
      changes: this.changes,
      faults: this.faults,
      convergence: this.#convergence(),
      slowest: this.#slowest,
      unconverged: this.unconverged,
      growth: this.#growth.processes(),
      kernel: Object.fromEntries(
        kinds.map((kind) => [kind, [this.#growth.kernelAtStart[kind] ?? 0, this.#growth.kernelAtEnd[kind]!] as const]),
      ),
      failures: this.#failures(),
    }
  }

  #failures(): string[] {
    return [
      ...(this.#ledger.lost > 0 ? [`${this.#ledger.lost} lost without an excuse`] : []),
      ...this.unconverged.map((what) => `did not converge: ${what}`),
      ...this.#growth.complaints().map((what) => `grew: ${what}`),
    ]
  }

  #convergence(): Convergence {
    const all = this.#convergenceMs
    return { count: all.length, medianMs: median(all), p99Ms: quantile(all, 0.99), worstMs: quantile(all, 1) }
  }
}

export function formatReport(report: Report, examples: ReadonlyMap<string, string>): string {
  const { made, convergence, growth, kernel } = report
  const total = sum(made)
  return [
    `\nmode ${report.options.mode}, seed ${report.options.seed}, ${report.seconds} s`,
    `connections: ${total} made (${list(made)}), ${report.lost} lost, ${sum(report.excused)} lost with an excuse, ${report.slow} slower than 0.9 s`,
    ...Object.entries(report.excused).map(([why, count]) => `  ${count} ${why}; the first: ${examples.get(why)}`),
    ...report.losses.map((loss) => `  LOST ${loss}`),
    `changes: ${sum(report.changes)} (${list(report.changes)})`,
    `faults: ${sum(report.faults)} (${list(report.faults)})`,
    `convergence of ${convergence.count} looks: median ${ms(convergence.medianMs)}, p99 ${ms(convergence.p99Ms)}, worst ${ms(convergence.worstMs)}`,
    `  the slowest of each kind, in ms; to scale, delete or kill a pod includes the time until another is there: ${list(report.slowest)}`,
    ...growth.map(
      ({ node, pid, minutes, rssMb, descriptors, threads }) =>
        `growth of the proxy of ${node} (process ${pid}, ${minutes.toFixed(1)} min): ${rssMb.start.toFixed(0)} to ${rssMb.end.toFixed(0)} MB (${signed(rssMb.perHour)} MB/h), ` +
        `${descriptors.start} to ${descriptors.end} descriptors (${signed(descriptors.perHour)}/h), ${threads.start} to ${threads.end} threads (${signed(threads.perHour)}/h)`,
    ),
    `kernel objects at rest: ${Object.entries(kernel)
      .map(([kind, [start, end]]) => `${kind} ${start} to ${end}`)
      .join(', ')}`,
    report.failures.length === 0 ? 'PASSED' : `FAILED:\n  ${report.failures.join('\n  ')}`,
    '',
  ].join('\n')
}

function ms(value: number): string {
  return Number.isNaN(value) ? '-' : `${Math.round(value)} ms`
}

function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0)
}

function list(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ')
}

function signed(value: number): string {
  return `${value >= 0 ? '+' : ''}${value.toFixed(1)}`
}
