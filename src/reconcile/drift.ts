// Drift of one IP family: whether the kernel holds what was decided, since when not, and what differed.

import { count } from '../lib/count.ts'
import type { DriftState, FoundDrift } from '../serve/control/state.ts'
import type { Clock } from '../lib/clock.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Applied } from './applied.ts'
import type { SyncStats } from './programmer.ts'
import type { IpFamilyName } from '../serve/proxy-health.ts'
import { firstOf } from './write-log.ts'

export interface DriftOptions {
  readonly family: IpFamilyName
  readonly metrics: Metrics
  readonly clock: Clock
}

/** How many drifts are kept, how many commands of each, and where each command is cut off. */
const KEPT = 5
const KEPT_COMMANDS = 8
const LONGEST_COMMAND = 200

export class Drift {
  readonly #options: DriftOptions
  #sinceMs: number
  /** Why the kernel does not hold it; undefined: it does. */
  #reason: string | undefined = 'nothing has been programmed yet'
  /** Another program changed our rules, or may have. */
  #suspectedMs: number | undefined
  #comparedMs: number | undefined
  #found: readonly FoundDrift[] = []
  #times = 0

  constructor(options: DriftOptions) {
    this.#options = options
    this.#sinceMs = options.clock.now()
    this.#show()
  }

  get state(): DriftState {
    return {
      holds: this.#reason === undefined,
      sinceMs: this.#sinceMs,
      reason: this.#reason,
      suspectedSinceMs: this.#suspectedMs,
      comparedMs: this.#comparedMs,
      times: this.#times,
      found: this.#found,
    }
  }

  /** Another program may have changed our rules: a comparison will follow. */
  suspect(): void {
    this.#suspectedMs ??= this.#options.clock.now()
  }

  /** That comparison has to wait. */
  postponed(): void {
    this.#lose('another program keeps changing our rules; they are restored now and then')
  }

  applied({
    isComparison,
    mayDiffer,
    operations: stats,
  }: Pick<Applied, 'isComparison' | 'mayDiffer' | 'operations'>): void {
    const { clock } = this.#options
    const suspectedMs = this.#suspectedMs
    if (isComparison) {
      if (stats.transactions > 0 && (suspectedMs !== undefined || !mayDiffer)) this.#find(stats)
      this.#suspectedMs = undefined
      this.#comparedMs = clock.now()
    }
    const { refused = 0 } = stats
    if (refused > 0) this.#lose(`the kernel refuses the rules of ${count(refused, 'service port')}`)
    else if (isComparison || this.#suspectedMs === undefined) this.#regain()
  }

  refused(message: string): void {
    this.#lose(message)
  }

  #find({ operations, commands }: SyncStats): void {
    const { metrics, family, clock } = this.#options
    const sample = firstOf(commands?.() ?? [], KEPT_COMMANDS, LONGEST_COMMAND)
    this.#times++
    metrics.driftOperations.with(family).inc(operations)
    const drift = { sinceMs: this.#suspectedMs ?? this.#comparedMs, restoredMs: clock.now(), operations, sample }
    this.#found = [drift, ...this.#found].slice(0, KEPT)
    // It held, did not, and does again.
    if (this.#reason === undefined) this.#sinceMs = clock.now()
  }

  #lose(reason: string): void {
    if (this.#reason === undefined) this.#sinceMs = this.#suspectedMs ?? this.#options.clock.now()
    this.#reason = reason
    this.#show()
  }

  #regain(): void {
    if (this.#reason === undefined) return
    this.#reason = undefined
    this.#sinceMs = this.#options.clock.now()
    this.#show()
  }

  #show(): void {
    const { metrics, family } = this.#options
    const holds = this.#reason === undefined
    metrics.inSync.with(family).set(holds ? 1 : 0)
    metrics.outOfSyncSince.with(family).set(holds ? 0 : Math.round(this.#sinceMs) / 1000)
    metrics.driftOperations.with(family).inc(0)
  }
}

/** Lines for people, for /statusz. */
export function formatDrift(family: IpFamilyName, state: DriftState): string {
  const { holds, sinceMs, reason, suspectedSinceMs, comparedMs, times, found } = state
  const lines = [
    holds
      ? `${family}: the kernel holds what was decided, since ${at(sinceMs)}`
      : `${family}: the kernel does NOT hold what was decided, since ${at(sinceMs)}: ${reason}`,
  ]
  if (comparedMs !== undefined) lines.push(`  compared as a whole: ${at(comparedMs)}`)
  if (suspectedSinceMs !== undefined)
    lines.push(`  another program touched it: ${at(suspectedSinceMs)}, to be compared`)
  const [last] = found
  if (last === undefined) return lines.join('\n')
  const since = last.sinceMs === undefined ? '' : ` after ${Math.max(0, Math.round(last.restoredMs - last.sinceMs))} ms`
  lines.push(`  differed ${count(times, 'time')}; the last, restored ${at(last.restoredMs)}${since}, took:`)
  for (const command of last.sample) lines.push(`    ${command}`)
  if (last.operations > last.sample.length) lines.push(`    ... ${last.operations} operations in all`)
  return lines.join('\n')
}

function at(ms: number): string {
  return new Date(ms).toISOString()
}
