// The path of a change, for one IP family: events into the model, the model's changes into the kernel, and afterwards
// everything that has to know about it.

import type { Clock } from '../lib/clock.ts'
import { closeAll } from '../lib/close-all.ts'
import type { Logger } from '../lib/log.ts'
import type { ServiceModel } from '../model/service-model.ts'
import type { NodeView, ServicePortChange, ServicePortView } from '../model/types.ts'
import type { IpFamilyName, ProxyHealth } from '../serve/proxy-health.ts'
import { BoundedRunner, type RunnerPeriods, type RunReason } from './bounded-runner.ts'
import type { Answerers, FlowCleaner } from './flow-cleaner.ts'
import { Healer } from './healer.ts'
import { SyncAccounts } from './sync-accounts.ts'
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
  /** Called after each sync that succeeded, with what it was about: all service ports after a comparison with the kernel. */
  readonly onSynced: (changes: readonly ServicePortChange[], all: Iterable<ServicePortView> | undefined) => void
}

/** All rules are compared with the kernel's this often, or when changes leave no time for it, half as often. */
const FULL_SYNC_MS = 60 * 60 * 1000

/** A sync under way. */
interface BegunSync {
  readonly startMs: number
  readonly full: boolean
  readonly changes: readonly ServicePortChange[]
  readonly answerers: Answerers | undefined
  /** When the first of the events came that led to it. */
  readonly waitingSinceMs: number | undefined
  /** When those events were triggered, in the cluster. */
  readonly triggerTimes: readonly number[]
}

export class FamilyPipeline {
  readonly #options: FamilyPipelineOptions
  readonly #runner: BoundedRunner
  readonly #healer: Healer
  readonly #accounts: SyncAccounts
  readonly #family: IpFamilyName
  #node: NodeView
  #started = false
  #needFullSync = true
  #lastFullSyncMs = 0
  #periods: RunnerPeriods
  /** The kernel refused the rules of a service. */
  #isIncomplete = false
  /** When the first event came that is not in the kernel yet. */
  #waitingSinceMs: number | undefined
  /** Trigger times of syncs that failed. */
  #triggerTimes: number[] = []

  constructor(options: FamilyPipelineOptions) {
    const { clock, log, periods, model, metrics } = options
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
    this.#accounts = new SyncAccounts({ family: this.#family, model, metrics, clock })
    this.#healer = new Healer({
      restore: () => {
        this.#needFullSync = true
        return this.#sync()
      },
      onHealed: () => this.#accounts.healed(),
      onFailed: () => this.#runner.request(),
      clock,
      log: log.withValues({ ipFamily: this.#family }),
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
    const { health, clock } = this.#options
    this.#waitingSinceMs ??= clock.monotonicNow()
    if (!this.#started) return
    health.queued(this.#family)
    this.#accounts.queued()
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
    if (!this.#started) return
    // A sync that comes before the healer's turn restores them, too.
    this.#needFullSync = true
    this.#healer.heal()
  }

  /** Resolves when no sync is under way any more. */
  stop(): Promise<void> {
    this.#started = false
    const healed = this.#healer.stop()
    return closeAll(
      () => this.#runner.stop(),
      () => healed,
      () => this.#options.programmer.close(),
    )
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
    const { model, programmer, clock, flows } = this.#options
    this.#accounts.countChanges()
    const changes = model.takeChanges()
    const begun: BegunSync = {
      startMs: clock.monotonicNow(),
      full: this.#needFullSync,
      changes,
      answerers: flows.answerersOf(changes),
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
    // The changes are taken and lost: only a comparison with the kernel knows what is missing.
    this.#needFullSync = true
    this.#waitingSinceMs = waitingSinceMs ?? this.#waitingSinceMs
    this.#triggerTimes.push(...triggerTimes)
    this.#accounts.failed()
    throw error
  }

  #succeed(begun: BegunSync, stats: SyncStats): SyncStats {
    const { clock, log, model, health, flows, onSynced } = this.#options
    const { full, changes, answerers, startMs } = begun
    if (full) this.#lastFullSyncMs = clock.monotonicNow()
    this.#isIncomplete = stats.refused !== undefined
    const tookMs = clock.monotonicNow() - startMs
    this.#accounts.succeeded({ ...begun, tookMs }, stats)
    health.updated(this.#family)
    const { gone, ...counts } = stats
    log
      .v(2)
      ?.info('SyncProxyRules complete', { ipFamily: this.#family, full, changes: changes.length, tookMs, ...counts })
    this.#accounts.countChanges()
    flows.clean(this.#node, { changes, all: full ? model.views() : undefined, gone, answerers })
    onSynced(changes, full ? model.views() : undefined)
    return stats
  }
}
