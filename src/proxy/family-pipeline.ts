// The path of a change, for one IP family: events into the model, the model's changes into the kernel, and afterwards
// everything that has to know about it.

import type { Clock, Timer } from '../lib/clock.ts'
import { closeAll } from '../lib/close-all.ts'
import type { Logger } from '../lib/log.ts'
import type { ServiceModel } from '../model/service-model.ts'
import type { ChangeCounts, NodeView, ServicePortChange } from '../model/types.ts'
import type { IpFamilyName, ProxyHealth } from '../serve/proxy-health.ts'
import { BoundedRunner, type RunnerPeriods, type RunReason } from './bounded-runner.ts'
import type { FlowCleaner, Synced } from './flow-cleaner.ts'
import { HealBudget } from './heal-budget.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Programmer, SyncStats } from '../modes/programmer.ts'

export interface FamilyPipelineOptions {
  readonly node: NodeView
  readonly model: ServiceModel
  readonly programmer: Programmer
  readonly flows: FlowCleaner
  readonly metrics: Metrics
  readonly health: ProxyHealth
  readonly periods: RunnerPeriods
  readonly clock: Clock
  readonly log: Logger
  /** Called after each sync that succeeded. */
  readonly onSynced: () => void
}

/** All rules are compared with the kernel's this often, or when changes leave no time for it, half as often. */
const FULL_SYNC_MS = 60 * 60 * 1000

/** A sync under way. */
interface BegunSync {
  readonly startMs: number
  readonly full: boolean
  readonly changes: readonly ServicePortChange[]
  /** When the first of the events came that led to it. */
  readonly waitingSinceMs: number | undefined
  /** When those events were triggered, in the cluster. */
  readonly triggerTimes: readonly number[]
}

export class FamilyPipeline {
  readonly #options: FamilyPipelineOptions
  readonly #runner: BoundedRunner
  readonly #family: IpFamilyName
  #node: NodeView
  #started = false
  #needFullSync = true
  #lastFullSyncMs = 0
  #periods: RunnerPeriods
  /** The kernel refused the rules of a service. */
  #isIncomplete = false
  readonly #healBudget = new HealBudget()
  #healTimer: Timer | undefined
  #healing = false
  /** The last one; never rejects. */
  #healRun: Promise<void> = Promise.resolve()
  /** Another program changed our rules while we restored them. */
  #healAgain = false
  /** When the first event came that is not in the kernel yet. */
  #waitingSinceMs: number | undefined
  /** Trigger times of syncs that failed. */
  #triggerTimes: number[] = []
  /** The totals that the metrics already have. */
  #reported: Pick<ChangeCounts, 'endpointsTotal' | 'servicesTotal'> = { endpointsTotal: 0, servicesTotal: 0 }

  constructor(options: FamilyPipelineOptions) {
    const { clock, log, periods } = options
    this.#options = options
    this.#node = options.node
    this.#periods = periods
    this.#family = options.node.family === 4 ? 'IPv4' : 'IPv6'
    this.#runner = new BoundedRunner({
      name: `sync of ${this.#family} rules`,
      run: (reason) => this.#run(reason),
      periods,
      clock,
      onError: (error, retryInMs) => log.error(error, 'Sync failed', { ipFamily: this.#family, retryInMs }),
    })
  }

  get model(): ServiceModel {
    return this.#options.model
  }

  get node(): NodeView {
    return this.#node
  }

  /** Everything has been listed: from now on the kernel follows. */
  start(): void {
    if (this.#started) return
    this.#started = true
    this.#runner.request()
    this.#runner.start()
  }

  /** Something in the model changed. */
  changed(): void {
    const { health, metrics, clock } = this.#options
    this.#waitingSinceMs ??= clock.monotonicNow()
    if (!this.#started) return
    health.queued(this.#family)
    metrics.lastQueued.with(this.#family).set(clock.now() / 1000)
    this.#runner.request()
  }

  setNode(node: NodeView): void {
    if (JSON.stringify(node) === JSON.stringify(this.#node)) return
    this.#node = node
    this.#options.model.setNode(node)
    // The base rules depend on it too.
    this.#needFullSync = true
    this.changed()
  }

  setPeriods(periods: RunnerPeriods): void {
    this.#periods = periods
    this.#runner.setPeriods(periods)
  }

  /** Another program changed our rules: restores them at once. */
  heal(): void {
    const { clock } = this.#options
    if (!this.#started || this.#healTimer !== undefined) return
    this.#needFullSync = true
    if (this.#healing) {
      this.#healAgain = true
      return
    }
    const waitMs = this.#healBudget.waitMs(clock.monotonicNow())
    if (waitMs > 0) {
      this.#healTimer = clock.setTimeout(() => {
        this.#healTimer = undefined
        this.heal()
      }, waitMs)
      return
    }
    this.#healBudget.begin(clock.monotonicNow())
    this.#healRun = this.#healNow()
  }

  /** Resolves when no sync is under way any more. */
  stop(): Promise<void> {
    this.#started = false
    this.#healTimer?.cancel()
    return closeAll(
      () => this.#runner.stop(),
      () => this.#healRun,
      () => this.#options.programmer.close(),
    )
  }

  async #healNow(): Promise<void> {
    const { log, metrics, clock } = this.#options
    this.#healing = true
    this.#healAgain = false
    try {
      const { transactions, operations } = await this.#sync()
      if (transactions === 0) return
      metrics.heals.with(this.#family).inc()
      log.warn('Restored rules that another program had changed', { ipFamily: this.#family, operations })
      if (!this.#healBudget.spend(clock.monotonicNow())) return
      log.error(undefined, 'Another program keeps changing our rules; does another proxy run on this node?', {
        ipFamily: this.#family,
      })
    } catch (error) {
      log.error(error, 'Cannot restore rules that another program changed', { ipFamily: this.#family })
      this.#runner.request()
    } finally {
      this.#healing = false
      if (this.#healAgain) this.heal()
    }
  }

  #run(reason: RunReason): void | Promise<void> {
    if (this.#isFullSyncDue(reason)) this.#needFullSync = true
    const pending = this.#sync()
    return pending instanceof Promise ? pending.then(() => {}) : undefined
  }

  /** A change need not wait for a comparison, unless there was no time for one between changes. */
  #isFullSyncDue(reason: RunReason): boolean {
    const sinceMs = this.#options.clock.monotonicNow() - this.#lastFullSyncMs
    // What was refused may be accepted now: its kernel module is there, or there is memory.
    const periodMs = this.#isIncomplete ? this.#periods.maxMs : FULL_SYNC_MS
    return sinceMs >= (reason === 'periodic' ? periodMs : 2 * periodMs)
  }

  /** A programmer that runs other programs takes its time, in which events go on: what they change is for the next sync. */
  #sync(): SyncStats | Promise<SyncStats> {
    const { model, programmer, clock } = this.#options
    this.#reportPending()
    const begun: BegunSync = {
      startMs: clock.monotonicNow(),
      full: this.#needFullSync,
      changes: model.takeChanges(),
      waitingSinceMs: this.#waitingSinceMs,
      triggerTimes: [...this.#triggerTimes, ...[...model.takeTriggerTimes().values()].flat()],
    }
    this.#needFullSync = false
    this.#waitingSinceMs = undefined
    this.#triggerTimes = []
    try {
      const pending = begun.full
        ? programmer.syncAll(this.#node, model.views())
        : programmer.sync(this.#node, begun.changes)
      if (!(pending instanceof Promise)) return this.#succeed(begun, pending)
      return pending.then(
        (stats) => this.#succeed(begun, stats),
        (error: unknown) => this.#fail(begun, error),
      )
    } catch (error) {
      return this.#fail(begun, error)
    }
  }

  #fail({ waitingSinceMs, triggerTimes }: BegunSync, error: unknown): never {
    const { metrics } = this.#options
    // The changes are taken and lost: only a comparison with the kernel knows what is missing.
    this.#needFullSync = true
    this.#waitingSinceMs = waitingSinceMs ?? this.#waitingSinceMs
    this.#triggerTimes.push(...triggerTimes)
    metrics.transactions.with(this.#family, 'refused').inc()
    throw error
  }

  #succeed(begun: BegunSync, stats: SyncStats): SyncStats {
    const { clock, log, model } = this.#options
    const { full, changes, startMs } = begun
    if (full) this.#lastFullSyncMs = clock.monotonicNow()
    this.#isIncomplete = stats.refused !== undefined
    const tookMs = clock.monotonicNow() - startMs
    this.#account(begun, { tookMs, stats })
    const { gone, ...counts } = stats
    log
      .v(2)
      ?.info('SyncProxyRules complete', { ipFamily: this.#family, full, changes: changes.length, tookMs, ...counts })
    this.#afterSync({ changes, all: full ? model.views() : undefined, gone })
    return stats
  }

  #account(
    { full, waitingSinceMs, triggerTimes }: BegunSync,
    { tookMs, stats }: { tookMs: number; stats: SyncStats },
  ): void {
    const { metrics, clock, health } = this.#options
    const family = this.#family
    metrics.syncDuration.with(family).observe(tookMs / 1000)
    metrics[full ? 'syncFullDuration' : 'syncPartialDuration'].with(family).observe(tookMs / 1000)
    metrics.lastSync.with(family).set(clock.now() / 1000)
    metrics.netlinkBytes.with(family).inc(stats.bytes)
    metrics.transactions.with(family, 'committed').inc(stats.transactions)
    metrics.operations.with(family).inc(stats.operations)
    for (const triggerMs of triggerTimes) {
      metrics.networkProgrammingDuration.with(family).observe((clock.now() - triggerMs) / 1000)
    }
    if (waitingSinceMs !== undefined) {
      metrics.changeDuration.with(family).observe((clock.monotonicNow() - waitingSinceMs) / 1000)
    }
    health.updated(family)
  }

  #afterSync(synced: Synced): void {
    const { model, metrics, flows, onSynced } = this.#options
    const { internal, external } = model.noLocalEndpoints
    metrics.noLocalEndpoints.with('internal', this.#family).set(internal)
    metrics.noLocalEndpoints.with('external', this.#family).set(external)
    this.#reportPending()
    flows.clean(this.#node, synced)
    onSynced()
  }

  #reportPending(): void {
    const { model, metrics } = this.#options
    const counts = model.changeCounts
    metrics.endpointChangesPending.with().set(counts.endpointsPending)
    metrics.serviceChangesPending.with().set(counts.servicesPending)
    metrics.endpointChanges.with().inc(counts.endpointsTotal - this.#reported.endpointsTotal)
    metrics.serviceChanges.with().inc(counts.servicesTotal - this.#reported.servicesTotal)
    this.#reported = counts
  }
}
