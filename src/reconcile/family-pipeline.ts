// The path of a change, for one IP family: from API events to the model, from the model's changes to the kernel, and then to the
// subscribers.

import type { DriftState, SyncState } from '../serve/control/state.ts'
import type { Clock } from '../lib/clock.ts'
import { closeAll } from '../lib/close-all.ts'
import { messageOf } from '../lib/errors.ts'
import type { Logger } from '../lib/log.ts'
import { mergeChanges } from '../model/merge-changes.ts'
import type { ServiceModel } from '../model/service-model.ts'
import type { NodeView, ServicePortChange, ServicePortView } from '../model/types.ts'
import type { IpFamilyName, ProxyHealth } from '../serve/proxy-health.ts'
import type { Applied, Attempt } from './applied.ts'
import { Drift } from './drift.ts'
import { type SubscriberName, subscriberFailures } from './subscriber-failures.ts'
import { type Subscriber, Subscribers } from './subscribers.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Periods, SharedTables } from './pacing.ts'
import type { Programmer } from './programmer.ts'
import { type Cause, ReconcileQueue, type WriteResult } from './queue.ts'
import { Recorder } from './recorder.ts'
import { SyncMetrics } from './sync-metrics.ts'

export interface FamilyPipelineOptions {
  readonly node: NodeView
  readonly model: ServiceModel
  readonly programmer: Programmer
  readonly metrics: Metrics
  readonly health: ProxyHealth
  readonly periods: Periods
  readonly sharedTables?: SharedTables | undefined
  readonly clock: Clock
  readonly log: Logger
  /** Called after each write. */
  readonly subscribers: readonly Subscriber[]
  /** Called when affinity entries were deleted that led clients to a backend that is gone. */
  readonly onStaleEntries?: () => void
}

/** How often all rules are compared with the kernel's; half as often when changes leave no time for it. */
const FULL_SYNC_MS = 60 * 60 * 1000

export class FamilyPipeline {
  readonly recorder: Recorder
  readonly #options: FamilyPipelineOptions
  readonly #queue: ReconcileQueue
  readonly #syncMetrics: SyncMetrics
  readonly #drift: Drift
  readonly #subscribers: Subscribers
  readonly #family: IpFamilyName
  #node: NodeView
  #started = false
  #needsComparison = true
  /** A comparison may find differences that no other program caused. */
  #mayDiffer = true
  #lastFullSyncMs = 0
  #lastSyncMs: number | undefined
  #periods: Periods
  /** Service ports whose rules the kernel refused. */
  #refused = 0
  /** When the oldest event came that is not in the kernel yet. */
  #waitingSinceMs: number | undefined
  /** Changes of the model that the kernel has not acknowledged, and when they were triggered. */
  #unacknowledged: readonly ServicePortChange[] = []
  #triggerTimes: readonly number[] = []

  constructor(options: FamilyPipelineOptions) {
    const { clock, log, periods, model, metrics, programmer, sharedTables } = options
    this.#options = options
    this.#node = options.node
    this.#periods = periods
    this.#family = options.node.family === 4 ? 'IPv4' : 'IPv6'
    this.recorder = new Recorder(clock)
    this.#syncMetrics = new SyncMetrics({ family: this.#family, model, metrics, clock })
    this.#drift = new Drift({ family: this.#family, metrics, clock })
    const failures = (subscriber: SubscriberName) =>
      subscriberFailures({ metrics, clock, log }, subscriber, this.#family)
    this.#subscribers = new Subscribers({
      subscribers: [this.#metricsSubscriber(), this.#changesSubscriber(), ...options.subscribers],
      failures,
      clock,
    })
    const familyLog = log.withValues({ ipFamily: this.#family })
    this.#queue = new ReconcileQueue({
      name: `sync of ${this.#family} rules`,
      clock,
      periods,
      sharedTables,
      write: (cause) => this.#write(cause),
      chores: programmer.finish === undefined ? [] : [{ run: () => this.#finish(), ...failures('cleanup') }],
      onError(error, cause, retryInMs) {
        const message = cause === 'heal' ? 'Cannot restore rules that another program changed' : 'Sync failed'
        familyLog.error(error, message, { retryInMs })
      },
      onPostponed: () => {
        this.#drift.suspect()
        this.#drift.postponed()
      },
      onFight: () =>
        familyLog.error(undefined, 'Another program keeps changing our rules; does another proxy run on this node?'),
    })
  }

  get model(): ServiceModel {
    return this.#options.model
  }

  get node(): NodeView {
    return this.#node
  }

  /** All service ports as the kernel has acknowledged them. */
  *views(): Generator<ServicePortView> {
    const pending = new Map(this.#unacknowledged.map(({ name, before }) => [name, before]))
    for (const view of this.#options.model.views()) if (!pending.has(view.name)) yield view
    for (const before of pending.values()) if (before !== undefined) yield before
  }

  get syncState(): SyncState {
    const { clock } = this.#options
    const toWall = (monotonicMs: number | undefined) =>
      monotonicMs === undefined ? undefined : Math.round(clock.now() - clock.monotonicNow() + monotonicMs)
    return {
      hasBegun: this.#started,
      lastSyncMs: toWall(this.#lastSyncMs),
      lastFullSyncMs: this.#lastSyncMs === undefined ? undefined : toWall(this.#lastFullSyncMs),
      waitingSinceMs: toWall(this.#waitingSinceMs),
      refused: this.#refused,
    }
  }

  get driftState(): DriftState {
    return this.#drift.state
  }

  /** In how many milliseconds the changes that wait are written; undefined: none wait. */
  get nextWriteMs(): number | undefined {
    return this.#queue.nextWriteMs
  }

  /** All objects have been listed: begins to write to the kernel. */
  start(): void {
    if (this.#started) return
    this.#started = true
    this.#queue.request()
    this.#queue.start()
  }

  /** An event reached the model. It may change nothing here: when it concerns the other family, or repeats what was known. */
  changed(urgency?: 'urgent'): void {
    const { health, clock, model } = this.#options
    if (!model.hasChanges && !this.#needsComparison) {
      this.recorder.forget()
      this.#syncMetrics.countChanges()
      return
    }
    this.#waitingSinceMs ??= clock.monotonicNow()
    if (!this.#started) return
    health.queued(this.#family)
    this.#syncMetrics.queued()
    this.#queue.request(urgency)
  }

  setNode(node: NodeView): void {
    if (JSON.stringify(node) === JSON.stringify(this.#node)) {
      if (!this.#options.model.hasChanges) this.recorder.forget()
      return
    }
    this.#node = node
    this.#mayDiffer = true
    this.#options.model.setNode(node)
    // The base rules depend on it too.
    this.#needsComparison = true
    this.changed()
  }

  setPeriods(periods: Periods): void {
    this.#periods = periods
    this.#queue.setPeriods(periods)
  }

  /** Another program changed our rules, or may have: restores them. */
  heal(certainty?: 'certain' | 'perhaps'): void {
    if (this.#started && this.#queue.heal(certainty)) this.#drift.suspect()
  }

  /** Begins no further write. Resolves when the current one has ended. */
  async halt(): Promise<void> {
    this.#started = false
    this.#subscribers.stop()
    await this.#queue.stop()
  }

  /** Halts, and closes the programmer. */
  stop(): Promise<void> {
    return closeAll(
      () => this.halt(),
      () => this.#options.programmer.close(),
    )
  }

  /** Changes during a write are for the next one. */
  async #write(cause: Cause): Promise<WriteResult> {
    const { model, programmer, clock } = this.#options
    this.#subscribers.begin()
    const taken = model.takeChanges()
    const changes = mergeChanges(this.#unacknowledged, taken)
    const triggerTimes = [...this.#triggerTimes, ...[...model.takeTriggerTimes().values()].flat()]
    const attempt: Attempt = {
      node: this.#node,
      cause,
      isComparison: this.#needsComparison || cause === 'heal' || this.#isComparisonDue(cause),
      mayDiffer: this.#mayDiffer || changes.length > 0,
      changes,
      beganMs: clock.monotonicNow(),
      waitingSinceMs: this.#waitingSinceMs,
      triggerTimes,
    }
    this.#unacknowledged = changes
    this.#triggerTimes = triggerTimes
    this.#needsComparison = false
    this.#mayDiffer = false
    this.#waitingSinceMs = undefined
    try {
      const operations = attempt.isComparison
        ? await programmer.syncAll(attempt.node, [...model.views()])
        : await programmer.sync(attempt.node, changes)
      return this.#applied({ ...attempt, operations, tookMs: clock.monotonicNow() - attempt.beganMs })
    } catch (error) {
      // Only a comparison knows what the kernel has now.
      this.#needsComparison = true
      this.#mayDiffer = true
      this.#waitingSinceMs = attempt.waitingSinceMs ?? this.#waitingSinceMs
      this.#subscribers.refused({ ...attempt, error })
      throw error
    }
  }

  /** The rules are in force. Never throws: no failure from here on undoes the sync. */
  #applied(applied: Applied): WriteResult {
    const { clock, health, log } = this.#options
    const { isComparison, operations } = applied
    this.#unacknowledged = []
    this.#triggerTimes = []
    this.#lastSyncMs = clock.monotonicNow()
    if (isComparison) this.#lastFullSyncMs = this.#lastSyncMs
    this.#refused = operations.refused ?? 0
    health.updated(this.#family)
    const isHealed = applied.cause === 'heal' && operations.transactions > 0
    if (isHealed) {
      log.warn('Restored rules that another program had changed', {
        ipFamily: this.#family,
        operations: operations.operations,
      })
    }
    this.#subscribers.follow(applied)
    return { isComparison, isHealed }
  }

  /** A change need not wait for a comparison, unless there was no time for one between changes. */
  #isComparisonDue(cause: Cause): boolean {
    const sinceMs = this.#options.clock.monotonicNow() - this.#lastFullSyncMs
    // The kernel may accept now what it refused: a module was loaded, or memory is free.
    const periodMs = this.#refused > 0 ? this.#periods.maxMs : FULL_SYNC_MS
    return sinceMs >= (cause === 'compare' ? periodMs : 2 * periodMs)
  }

  /** Lets the programmer clean up after the sync. */
  async #finish(): Promise<number | undefined> {
    const finished = await this.#options.programmer.finish!()
    if (!finished) return undefined
    this.#syncMetrics.written(finished)
    if (finished.hadStaleEntries === true) this.#options.onStaleEntries?.()
    if (finished.isUnsure) {
      this.#needsComparison = true
      this.#mayDiffer = true
      this.#queue.request()
    }
    return finished.againInMs
  }

  #metricsSubscriber(): Subscriber {
    return {
      name: 'metrics',
      notes: true,
      begin: () => this.#syncMetrics.countChanges(),
      follow: (applied) => {
        this.#syncMetrics.applied(applied)
        this.#drift.applied(applied)
        this.#syncMetrics.countChanges()
      },
      refused: ({ error }) => {
        this.#drift.refused(messageOf(error))
        this.#syncMetrics.refused()
      },
    }
  }

  #changesSubscriber(): Subscriber {
    return {
      name: 'changes',
      notes: true,
      begin: () => this.recorder.begin(),
      follow: (applied) => {
        this.recorder.applied(applied)
        this.#log(applied)
      },
      refused: (attempt) => this.recorder.refused(attempt),
    }
  }

  #log({ isComparison: full, changes, tookMs, operations: done }: Applied): void {
    const { transactions, operations, bytes, refused } = done
    this.#options.log.v(2)?.info('SyncProxyRules complete', {
      ipFamily: this.#family,
      full,
      changes: changes.length,
      tookMs,
      transactions,
      operations,
      bytes,
      ...(refused !== undefined && { refused }),
    })
  }
}
