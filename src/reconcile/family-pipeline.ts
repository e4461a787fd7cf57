// The path of a change, for one IP family: events into the model, the model's changes into the kernel, and afterwards
// everything that has to know about it.

import type { ChangedObject, SyncChange } from '../serve/control/changes.ts'
import type { DriftState, SyncState } from '../serve/control/state.ts'
import type { Clock } from '../lib/clock.ts'
import { closeAll } from '../lib/close-all.ts'
import { messageOf } from '../lib/errors.ts'
import type { Logger } from '../lib/log.ts'
import type { ServiceModel } from '../model/service-model.ts'
import type { NodeView, ServicePortChange, ServicePortView } from '../model/types.ts'
import type { IpFamilyName, ProxyHealth } from '../serve/proxy-health.ts'
import { BoundedRunner, type RunnerPeriods, type RunReason } from './bounded-runner.ts'
import type { Answerers, FlowCleaner } from './flow-cleaner.ts'
import { Drift } from './drift.ts'
import { type FollowerFailures, followerFailures, type FollowerName } from './follower-failures.ts'
import { type Follower, Followers } from './followers.ts'
import { Healer } from './healer.ts'
import { SyncAccounts } from './sync-accounts.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { FinishStats, Programmer, SyncStats } from './programmer.ts'

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
  /** What else has to know what was programmed. */
  readonly followers: readonly Follower[]
}

/** All rules are compared with the kernel's this often, or when changes leave no time for it, half as often. */
const FULL_SYNC_MS = 60 * 60 * 1000

/** A sync under way. */
interface BegunSync {
  readonly startMs: number
  readonly full: boolean
  readonly mayDiffer: boolean
  readonly changes: readonly ServicePortChange[]
  /** When the first of the events came that led to it. */
  readonly waitingSinceMs: number | undefined
  /** When those events were triggered, in the cluster. */
  readonly triggerTimes: readonly number[]
  /** What came, where a reader looks. */
  readonly heard: Heard | undefined
  readonly heals: boolean
}

/** Told of each sync that did something, or was meant to. */
export type SyncListener = (change: Omit<SyncChange, 'number'>) => void

export class FamilyPipeline {
  readonly #options: FamilyPipelineOptions
  readonly #runner: BoundedRunner
  readonly #healer: Healer
  readonly #accounts: SyncAccounts
  readonly #drift: Drift
  readonly #followers: Followers
  readonly #noteFailures: Record<'metrics' | 'changes', FollowerFailures>
  readonly #family: IpFamilyName
  #node: NodeView
  #started = false
  #needFullSync = true
  /** There is a reason of our own why a comparison would find differences. */
  #mayDiffer = true
  #lastFullSyncMs = 0
  #lastSyncMs: number | undefined
  #periods: RunnerPeriods
  /** Service ports whose rules the kernel refused. */
  #refused = 0
  /** When the first event came that is not in the kernel yet. */
  #waitingSinceMs: number | undefined
  /** Trigger times of syncs that failed. */
  #triggerTimes: number[] = []
  /** Undefined while no reader looks: then nothing is put into words. */
  #listener: SyncListener | undefined
  /** What came from the API since the last sync, while a reader looks. */
  #heard: Heard | undefined
  #lastComparison: Omit<SyncChange, 'number'> | undefined

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
    this.#drift = new Drift({ family: this.#family, metrics, clock })
    const failures = (follower: FollowerName) => followerFailures({ metrics, clock, log }, follower, this.#family)
    this.#noteFailures = { metrics: failures('metrics'), changes: failures('changes') }
    this.#followers = new Followers({
      followers: [
        { name: 'cleanup', follow: () => this.#finish() },
        { name: 'udp_flows', follow: (sync) => options.flows.follow(sync) },
        ...options.followers,
      ],
      everything: () => ({ node: this.#node, changes: [], all: this.#views }),
      failures,
      clock,
    })
    this.#healer = new Healer({
      restore: () => {
        this.#needFullSync = true
        return this.#sync('heals')
      },
      onHealed: () => this.#accounts.healed(),
      onFailed: () => this.#runner.request(),
      onPostponed: () => this.#drift.postponed(),
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

  /** The last time that all was compared with the kernel, with the first of what it took. */
  get lastComparison(): Omit<SyncChange, 'number'> | undefined {
    return this.#lastComparison
  }

  /** Tells each sync from now on, in words; undefined: no longer. */
  listen(listener: SyncListener | undefined): void {
    this.#listener = listener
    this.#heard = undefined
    this.#options.programmer.tellCommands?.(listener !== undefined)
  }

  get isListenedTo(): boolean {
    return this.#listener !== undefined
  }

  /** What came from the API, before the model is told of it: for a reader who looks. */
  hear(object: ChangedObject): void {
    this.#heard ??= new Heard(this.#options.clock.monotonicNow())
    this.#heard.add(object)
  }

  /** Everything has been listed: from now on the kernel follows. */
  start(): void {
    if (this.#started) return
    this.#started = true
    this.#runner.request()
    this.#runner.start()
  }

  /** Something was told to the model. What is of the other family, or what was known, is no change. */
  changed(urgency?: 'urgent'): void {
    const { health, clock, model } = this.#options
    if (!model.hasChanges && !this.#needFullSync) {
      this.#heard = undefined
      this.#accounts.countChanges()
      return
    }
    this.#waitingSinceMs ??= clock.monotonicNow()
    if (!this.#started) return
    health.queued(this.#family)
    this.#accounts.queued()
    this.#runner.request(urgency)
  }

  setNode(node: NodeView): void {
    if (JSON.stringify(node) === JSON.stringify(this.#node)) {
      if (!this.#options.model.hasChanges) this.#heard = undefined
      return
    }
    this.#node = node
    this.#mayDiffer = true
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
    this.#drift.suspect()
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
      () => this.#followers.stop(),
      () => this.#options.flows.stop(),
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
    const periodMs = this.#refused > 0 ? this.#periods.maxMs : FULL_SYNC_MS
    return sinceMs >= (reason === 'periodic' ? periodMs : 2 * periodMs)
  }

  /** A programmer that runs other programs takes its time, in which events go on: what they change is for the next sync. */
  #sync(why: 'follows' | 'heals' = 'follows'): SyncStats | Promise<SyncStats> {
    const { model, programmer, clock, flows } = this.#options
    this.#note('metrics', () => this.#accounts.countChanges())
    const changes = model.takeChanges()
    const begun: BegunSync = {
      startMs: clock.monotonicNow(),
      full: this.#needFullSync,
      mayDiffer: this.#mayDiffer || changes.length > 0,
      changes,
      waitingSinceMs: this.#waitingSinceMs,
      triggerTimes: [...this.#triggerTimes, ...[...model.takeTriggerTimes().values()].flat()],
      heard: this.#heard,
      heals: why === 'heals',
    }
    this.#heard = undefined
    this.#needFullSync = false
    this.#mayDiffer = false
    this.#waitingSinceMs = undefined
    this.#triggerTimes = []
    let pending: SyncStats | Promise<SyncStats>
    let answerers: Answerers | undefined
    try {
      answerers = flows.answerersOf(changes)
      pending = begun.full ? programmer.syncAll(this.#node, model.views()) : programmer.sync(this.#node, begun.changes)
    } catch (error) {
      return this.#fail(begun, error)
    }
    if (!(pending instanceof Promise)) return this.#succeed(begun, pending, answerers)
    return pending.then(
      (stats) => this.#succeed(begun, stats, answerers),
      (error: unknown) => this.#fail(begun, error),
    )
  }

  #fail(begun: BegunSync, error: unknown): never {
    const { waitingSinceMs, triggerTimes } = begun
    // The changes are taken and lost: only a comparison with the kernel knows what is missing.
    this.#needFullSync = true
    this.#mayDiffer = true
    this.#waitingSinceMs = waitingSinceMs ?? this.#waitingSinceMs
    this.#triggerTimes.push(...triggerTimes)
    this.#note('metrics', () => {
      this.#drift.failed(messageOf(error))
      this.#accounts.failed()
    })
    this.#note('changes', () => this.#tell(begun, { transactions: 0, operations: 0, bytes: 0 }, error))
    throw error
  }

  /** The rules are in force: whatever fails from here on, the sync is done. */
  #succeed(begun: BegunSync, stats: SyncStats, answerers: Answerers | undefined): SyncStats {
    const { clock, log, health } = this.#options
    const { full, changes, startMs } = begun
    this.#lastSyncMs = clock.monotonicNow()
    if (full) this.#lastFullSyncMs = this.#lastSyncMs
    this.#refused = stats.refused ?? 0
    health.updated(this.#family)
    const tookMs = clock.monotonicNow() - startMs
    this.#note('metrics', () => {
      this.#accounts.succeeded({ ...begun, tookMs }, stats)
      this.#drift.synced({ full, mayDiffer: begun.mayDiffer, stats })
      this.#accounts.countChanges()
    })
    const { gone, sample: _, commands: __, isSucceeded = false, ...counts } = stats
    this.#note('changes', () => {
      this.#tell(begun, stats)
      log
        .v(2)
        ?.info('SyncProxyRules complete', { ipFamily: this.#family, full, changes: changes.length, tookMs, ...counts })
    })
    this.#followers.follow({
      node: this.#node,
      changes,
      all: full ? this.#views : undefined,
      gone,
      answerers,
      isSucceeded,
    })
    return stats
  }

  /** What the programmer does when the rules are in force. */
  #finish(): void | Promise<void> {
    const count = (stats: FinishStats | void) => {
      if (stats) this.#note('metrics', () => this.#accounts.finished(stats))
    }
    const pending = this.#options.programmer.finish?.()
    return pending instanceof Promise ? pending.then(count) : count(pending)
  }

  /** What is only noted is not tried again: the next sync notes the same anew. */
  #note<T>(what: 'metrics' | 'changes', work: () => T): T | undefined {
    const { onFailed, onMended } = this.#noteFailures[what]
    try {
      const result = work()
      onMended()
      return result
    } catch (error) {
      onFailed(error)
      return undefined
    }
  }

  /** All service ports, as often as they are asked for. */
  get #views(): Iterable<ServicePortView> {
    const { model } = this.#options
    return { [Symbol.iterator]: () => model.views() }
  }

  #tell(begun: BegunSync, stats: SyncStats, error?: unknown): void {
    const { full, heard, changes } = begun
    const isWorthIt = stats.operations > 0 || error !== undefined || heard !== undefined
    if (full && error === undefined) this.#lastComparison = this.#describe(begun, stats)
    if (this.#listener !== undefined && (isWorthIt || changes.length > 0)) {
      this.#listener(this.#describe(begun, stats, error))
    }
  }

  #describe(begun: BegunSync, stats: SyncStats, error?: unknown): Omit<SyncChange, 'number'> {
    const { clock } = this.#options
    const { full, heard, changes, heals } = begun
    const toWall = (monotonicMs: number) => clock.now() - clock.monotonicNow() + monotonicMs
    const commands = stats.commands ?? stats.sample ?? []
    return {
      family: this.#node.family,
      why: heals ? 'heal' : heard !== undefined ? 'event' : full ? 'compare' : 'eject',
      objects: heard?.objects ?? [],
      moreObjects: heard?.more ?? 0,
      ports: changes.slice(0, MOST_NAMES).map(({ name }) => name),
      morePorts: Math.max(0, changes.length - MOST_NAMES),
      receivedMs: heard === undefined ? undefined : toWall(heard.sinceMs),
      beganMs: toWall(begun.startMs),
      doneMs: clock.now(),
      operations: stats.operations,
      bytes: stats.bytes,
      commands,
      moreCommands: Math.max(0, stats.operations - commands.length),
      error: error === undefined ? undefined : messageOf(error),
    }
  }
}

/** So many objects and service ports of a sync are named. */
const MOST_NAMES = 20

/** What came from the API, the oldest first, each once. */
class Heard {
  readonly sinceMs: number
  readonly #objects = new Map<string, ChangedObject>()
  more = 0

  constructor(sinceMs: number) {
    this.sinceMs = sinceMs
  }

  get objects(): ChangedObject[] {
    return [...this.#objects.values()]
  }

  add(object: ChangedObject): void {
    const key = `${object.kind} ${object.namespace}/${object.name}`
    if (this.#objects.size < MOST_NAMES || this.#objects.has(key)) this.#objects.set(key, object)
    else this.more++
  }
}
