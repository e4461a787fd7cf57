// The metrics of the syncs of one IP family.

import type { Clock } from '../lib/clock.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { ServiceModel } from '../model/service-model.ts'
import type { ChangeCounts } from '../model/types.ts'
import type { Applied } from './applied.ts'
import type { WriteStats } from './programmer.ts'
import type { IpFamilyName } from '../serve/proxy-health.ts'

export interface SyncMetricsOptions {
  readonly family: IpFamilyName
  readonly model: Pick<ServiceModel, 'changeCounts' | 'noLocalEndpoints'>
  readonly metrics: Metrics
  readonly clock: Clock
}

export class SyncMetrics {
  readonly #options: SyncMetricsOptions
  /** The totals that the metrics already have. */
  #reported: Pick<ChangeCounts, 'endpointsTotal' | 'servicesTotal'> = { endpointsTotal: 0, servicesTotal: 0 }

  constructor(options: SyncMetricsOptions) {
    this.#options = options
  }

  queued(): void {
    const { metrics, clock, family } = this.#options
    metrics.lastQueued.with(family).set(clock.now() / 1000)
  }

  applied({ isComparison, tookMs, waitingSinceMs, triggerTimes, operations, cause }: Applied): void {
    const { metrics, clock, family } = this.#options
    metrics.syncDuration.with(family).observe(tookMs / 1000)
    metrics[isComparison ? 'syncFullDuration' : 'syncPartialDuration'].with(family).observe(tookMs / 1000)
    metrics.lastSync.with(family).set(clock.now() / 1000)
    this.written(operations)
    if (cause === 'heal' && operations.transactions > 0) metrics.heals.with(family).inc()
    for (const triggerMs of triggerTimes) {
      metrics.networkProgrammingDuration.with(family).observe((clock.now() - triggerMs) / 1000)
    }
    if (waitingSinceMs !== undefined) {
      metrics.changeDuration.with(family).observe((clock.monotonicNow() - waitingSinceMs) / 1000)
    }
    this.#countNoLocalEndpoints()
  }

  /** What was written, in a sync or after it. */
  written({ bytes, transactions, operations }: WriteStats): void {
    const { metrics, family } = this.#options
    metrics.netlinkBytes.with(family).inc(bytes)
    metrics.transactions.with(family, 'committed').inc(transactions)
    metrics.operations.with(family).inc(operations)
  }

  refused(): void {
    const { metrics, family } = this.#options
    metrics.transactions.with(family, 'refused').inc()
  }

  /** How many changes came, and how many of them the kernel does not have yet. */
  countChanges(): void {
    const { model, metrics } = this.#options
    const counts = model.changeCounts
    metrics.endpointChangesPending.with().set(counts.endpointsPending)
    metrics.serviceChangesPending.with().set(counts.servicesPending)
    metrics.endpointChanges.with().inc(counts.endpointsTotal - this.#reported.endpointsTotal)
    metrics.serviceChanges.with().inc(counts.servicesTotal - this.#reported.servicesTotal)
    this.#reported = counts
  }

  #countNoLocalEndpoints(): void {
    const { model, metrics, family } = this.#options
    const { internal, external } = model.noLocalEndpoints
    metrics.noLocalEndpoints.with('internal', family).set(internal)
    metrics.noLocalEndpoints.with('external', family).set(external)
  }
}
