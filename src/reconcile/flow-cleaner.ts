// Deletes UDP flows from the connection tracker that still go to backends that their service no longer has.

import type { Clock, Timer } from '../lib/clock.ts'
import type { Family } from '../lib/ip.ts'
import type { Logger } from '../lib/log.ts'
import { nextTurn } from '../lib/next-turn.ts'
import { TryAgain } from '../lib/try-again.ts'
import { goneUdpFrontends, staleAnswerers, StaleFlowIndex, type UdpFlow } from '../model/stale-flows.ts'
import type { FrontendAddress, NodeView, ServicePortChange, ServicePortName, ServicePortView } from '../model/types.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { SubscriberFailures } from './subscriber-failures.ts'
import type { Applied } from './applied.ts'
import type { Answerers } from './programmer.ts'

/** The kernel's connection tracker. */
export interface FlowTable<F extends UdpFlow = UdpFlow> {
  /** The flows that match; with an endpoint (`ip:port`), only the flows that it answers. */
  findUdp(family: Family, isWanted: (flow: UdpFlow) => boolean, answerer?: string): Promise<readonly F[]>
  /** How many were deleted; flows that ended meanwhile do not count. */
  delete(flows: readonly F[]): number
}

export interface FlowCleanerOptions {
  readonly table: FlowTable
  readonly metrics: Metrics
  readonly clock: Clock
  readonly log: Logger
  readonly failures: SubscriberFailures
  /** Every address of this machine, for node ports that are open on all of them. */
  readonly machineAddresses: () => readonly string[]
  /** All service ports as the kernel has them. */
  readonly views: () => Iterable<ServicePortView>
  /** `ip:port` of the sockets that answer the flows of a service port, in a mode where endpoints do not. */
  readonly targets?: ((view: ServicePortView) => readonly string[]) | undefined
}

/** The most endpoints whose flows are read one by one: the kernel goes through all flows each time. */
const FEW_ANSWERERS = 8

/** Any pod can make hundreds of thousands of flows to one endpoint. This many take some ten milliseconds. */
const DELETED_IN_A_TURN = 2000

/**
 * The second look at flows comes after this long. A packet that chose its endpoint before the change may enter its flow after the first
 * look: it waited on another CPU, or affinity sent it there until its entry was deleted. If that takes longer, there is a third.
 */
const SECOND_LOOK_MS = 1500

/** The service ports whose flows are to be checked. */
interface Task {
  readonly views: Map<ServicePortName, ServicePortView>
  gone: readonly FrontendAddress[]
  answerers: ReadonlySet<string> | 'any'
  /** The views are those of all service ports. */
  isWhole: boolean
  /** This is the second look. There is no third. */
  isSecond: boolean
}

/**
 * Checks flows in the background, one look at a time. Changes during a look are for the next one, and also correct the current one. A
 * look that fails is repeated, together with the changes since.
 */
export class FlowCleaner {
  readonly #options: FlowCleanerOptions
  #node: NodeView | undefined
  #next: Task | undefined
  /** For the second look. */
  #later: Task | undefined
  #laterTimer: Timer | undefined
  /** Affinity led clients to backends that are gone after the look before `#later`. */
  #needsThird = false
  /** The current look, and the index that it uses. */
  #current: Task | undefined
  #index: StaleFlowIndex | undefined
  #looking: Promise<void> | undefined
  readonly #again: TryAgain

  constructor(options: FlowCleanerOptions) {
    this.#options = options
    this.#again = new TryAgain({ clock: options.clock, again: () => this.#begin(), ...options.failures })
  }

  /** Checks the flows of changed service ports, or of all after a comparison. */
  follow({
    node,
    changes,
    isComparison,
    operations,
  }: Pick<Applied, 'node' | 'changes' | 'isComparison' | 'operations'>): void {
    if (operations.isSucceeded === true) return this.#forget()
    this.#node = node
    const all = isComparison ? [...this.#options.views()] : undefined
    const served = this.#servedChanges(changes, operations.answerers)
    this.#follow(served)
    for (const task of [this.#current, this.#later]) if (task !== undefined) this.#note(task, served, all)
    const answerers = all === undefined ? staleAnswerers(served) : 'any'
    if (answerers !== 'any' && answerers.size === 0 && this.#next === undefined) return
    const task = (this.#next ??= newTask())
    task.isSecond = false
    task.answerers = union(task.answerers, answerers)
    task.gone = [...task.gone, ...goneUdpFrontends(changes), ...(operations.gone ?? [])]
    this.#note(task, served, all)
    if (!this.#again.isWaiting) this.#begin()
  }

  /** Until now, affinity may have led new flows to a backend that is gone. Those that began since the last look are still there. */
  staleEntriesDeleted(): void {
    if (this.#node === undefined) return
    if (this.#later !== undefined) this.#needsThird = true
    else if (this.#next === undefined && this.#current?.isSecond !== false) {
      const task = newTask()
      task.answerers = 'any'
      this.#note(task, [], this.#options.views())
      this.#lookAgain(task)
    }
  }

  /** Begins no further look. Resolves when the current one has ended. */
  async stop(): Promise<void> {
    this.#again.close()
    this.#forget()
    await this.#looking
  }

  #forget(): void {
    this.#next = undefined
    this.#current = undefined
    this.#later = undefined
    this.#needsThird = false
    this.#laterTimer?.cancel()
    this.#laterTimer = undefined
  }

  #note(task: Task, served: readonly ServicePortChange[], all: Iterable<ServicePortView> | undefined): void {
    if (all !== undefined) {
      task.isWhole = true
      task.views.clear()
      for (const view of all) if (view.protocol === 'UDP') task.views.set(view.name, this.#served(view))
    } else {
      for (const { name, after } of served) {
        if (after === undefined) task.views.delete(name)
        else task.views.set(name, after)
      }
    }
  }

  /** Resolves when all looks are done. */
  async idle(): Promise<void> {
    await this.#looking
  }

  #begin(): void {
    this.#looking ??= this.#look()
  }

  async #look(): Promise<void> {
    const { metrics, clock, log } = this.#options
    for (let task = this.#next; task !== undefined; task = this.#next) {
      this.#next = undefined
      this.#current = task
      const { family } = this.#node!
      const ipFamily = family === 4 ? 'IPv4' : 'IPv6'
      const startMs = clock.monotonicNow()
      try {
        const deleted = await this.#carryOut(task, family)
        metrics.conntrackDeleted.with(ipFamily).inc(deleted)
        if (deleted > 0) log.v(2)?.info('Removed stale UDP flows', { ipFamily, deleted })
        this.#again.succeeded()
        if (this.#current !== undefined && !task.isSecond && hasUdp(task)) this.#lookAgain(task)
      } catch (error) {
        if (this.#current !== undefined) this.#next = this.#next === undefined ? task : both(task, this.#next)
        this.#again.failed(error)
        break
      } finally {
        this.#current = undefined
        this.#index = undefined
        metrics.conntrackDuration.with(ipFamily).observe((clock.monotonicNow() - startMs) / 1000)
      }
    }
    this.#looking = undefined
  }

  #lookAgain(task: Task): void {
    this.#later = this.#later === undefined ? task : both(this.#later, task)
    this.#laterTimer ??= this.#options.clock.setTimeout(() => {
      const later = { ...this.#later!, isSecond: this.#next === undefined && !this.#needsThird }
      this.#needsThird = false
      this.#next = this.#next === undefined ? later : both(later, this.#next)
      this.#later = undefined
      this.#laterTimer = undefined
      if (!this.#again.isWaiting) this.#begin()
    }, SECOND_LOOK_MS)
  }

  async #carryOut(task: Task, family: Family): Promise<number> {
    const { table } = this.#options
    const { views, gone, answerers } = task
    // The kernel goes through its whole table for each look, ten milliseconds where it has 262,144 rows of one flow or none.
    if (!hasUdp(task)) return 0
    const index = new StaleFlowIndex(this.#nodePortAddresses(this.#node!))
    index.addGone(gone)
    for (const view of views.values()) index.add(view)
    this.#index = index
    const isStale = (flow: UdpFlow) => index.isStale(flow)
    const asked = answerers === 'any' || answerers.size > FEW_ANSWERERS ? [undefined] : answerers
    const lists: (readonly UdpFlow[])[] = []
    for (const answerer of asked) lists.push(await table.findUdp(family, isStale, answerer))
    const found = lists.flat()
    let deleted = 0
    for (let first = 0; first < found.length; first += DELETED_IN_A_TURN) {
      if (first > 0) await nextTurn()
      // A change may have made a flow right since it was read.
      const stale = found.slice(first, first + DELETED_IN_A_TURN).filter(isStale)
      if (stale.length > 0) deleted += table.delete(stale)
    }
    return deleted
  }

  /** A flow that began after a change is not judged by what was before it. */
  #follow(changes: readonly ServicePortChange[]): void {
    const index = this.#index
    if (index === undefined) return
    for (const { before } of changes) if (before !== undefined) index.forget(before)
    for (const { after } of changes) if (after !== undefined) index.add(after)
  }

  #servedChanges(changes: readonly ServicePortChange[], answered: Answerers | undefined): readonly ServicePortChange[] {
    if (this.#options.targets === undefined) return changes
    return changes.map(({ name, before, after }) => ({
      name,
      before: before && { ...before, serving: answered?.get(name) ?? [] },
      after: after && this.#served(after),
    }))
  }

  /** Includes the sockets that answer its flows, in modes where endpoints do not. */
  #served(view: ServicePortView): ServicePortView {
    const { targets } = this.#options
    return targets === undefined ? view : { ...view, serving: targets(view) }
  }

  #nodePortAddresses({ nodePortAddresses }: NodeView): ReadonlySet<string> {
    const addresses = nodePortAddresses.kind === 'only' ? nodePortAddresses.addresses : this.#options.machineAddresses()
    return new Set(addresses)
  }
}

function newTask(): Task {
  return { views: new Map(), gone: [], answerers: new Set(), isWhole: false, isSecond: false }
}

/** Without UDP services, as in a family that the cluster does not use, no flow can be stale. */
function hasUdp({ views, gone }: Task): boolean {
  return views.size > 0 || gone.length > 0
}

/** `earlier` already includes all changes since it began. */
function both(earlier: Task, later: Task): Task {
  return {
    views: later.isWhole ? later.views : new Map([...earlier.views, ...later.views]),
    gone: [...earlier.gone, ...later.gone],
    answerers: union(earlier.answerers, later.answerers),
    isWhole: earlier.isWhole || later.isWhole,
    isSecond: earlier.isSecond && later.isSecond,
  }
}

function union(a: Task['answerers'], b: Task['answerers']): Task['answerers'] {
  return a === 'any' || b === 'any' ? 'any' : new Set([...a, ...b])
}
